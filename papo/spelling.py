"""How a number that is not finite is written where there is only JSON, which has no word for it."""

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
