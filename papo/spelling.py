"""How a number that is not finite is written where there is only JSON, which has no word for it."""

import json
import math
from typing import Any

SPELLINGS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""The words that JavaScript and Python's own json have for them, as strings: any JSON reader takes those."""

Number = float | int | bool | None


def spelled(field: Any) -> Any:
    """`field` itself unless it is a number that JSON has no word for; else the word as a string."""
    if not isinstance(field, float) or math.isfinite(field):
        return field
    return "NaN" if math.isnan(field) else "Infinity" if field > 0 else "-Infinity"


def number_of(value: Number | str) -> Number:
    """The number again. Raises ValueError for a string that spells none."""
    if not isinstance(value, str):
        return value
    if value not in SPELLINGS:
        raise ValueError(f"{value!r} is no number: the strings that are one are {', '.join(SPELLINGS)}.")
    return SPELLINGS[value]


def metrics_of(journal: bytes) -> list[dict[str, Any]]:
    """The whole lines of a journal of metrics, the last of each iteration; see `papo.runs.RunView.metrics`."""
    latest: dict[int, dict[str, Any]] = {}
    for text in journal.splitlines():
        try:
            line: dict[str, Any] = json.loads(text)
            values = {name: number_of(value) for name, value in line["values"].items()}
            latest[int(line["iteration"])] = {**line, "values": values}
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # A line that a crash tore.
    return [latest[iteration] for iteration in sorted(latest)]
