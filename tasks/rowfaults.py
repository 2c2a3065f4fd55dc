"""What a row of data must hold, and the one report of all rows that do not."""

import re
from typing import Any, cast

from papo.errors import DataError
from schemas.canonical import canonical_json

ROLES = ("system", "user", "assistant")
WAY_OUT = "Repair these rows, leave them out (skip, take), or map other columns (columns)."
SHOWN = 10
"""Rows named for each kind of fault; all are counted."""
_WHOLE = re.compile(r"-?\d+")
_SURROGATE = re.compile("[\ud800-\udfff]")


class FaultyRow(ValueError):
    """A value that a row must not have; the message goes on after the column's name and holds no contents."""


class Spelled(str):
    """A number as the file spells it."""

    __slots__ = ()


class RowFaults:
    """All faults of one source, by kind, each with the places where it was found."""

    def __init__(self, source: str, *, way_out: str = WAY_OUT) -> None:
        self._source = source
        self._way_out = way_out
        self._places: dict[str, list[str]] = {}
        self._hints: dict[str, str] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def kinds(self) -> list[str]:
        """What is wrong, each once."""
        return list(self._places)

    def add(self, fault: str, place: str, *, hint: str = "") -> None:
        """`hint`: of the first row with this fault, shown once."""
        self._places.setdefault(fault, []).append(place)
        self._hints.setdefault(fault, hint)
        self._count += 1

    def raise_if_any(self) -> None:
        """Raises DataError with every kind of fault."""
        if not self._count:
            return
        lines = [self._line(fault, places) for fault, places in self._places.items()]
        count = "1 fault" if self._count == 1 else f"{self._count} faults"
        raise DataError(f"{self._source} has {count}:\n" + "\n".join(lines) + f"\n{self._way_out}")

    def _line(self, fault: str, places: list[str]) -> str:
        more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
        hint = f". {self._hints[fault]}" if self._hints[fault] else ""
        return f"  {fault}: {', '.join(places[:SHOWN])}{more}{hint}"


def prompt_of(value: Any) -> tuple[str, bool]:
    """(text, False), or (canonical JSON of chat messages, True). Raises FaultyRow."""
    if isinstance(value, list):
        messages = [_message(message) for message in cast("list[Any]", value)]
        if not messages:
            raise FaultyRow("has no messages")
        if messages[-1]["role"] != "user":
            raise FaultyRow("ends in a message that is not the user's")
        return canonical_json(messages).decode(), True
    return _text(value, "text or a list of chat messages"), False


def answer_of(value: Any) -> str:
    """Text, or a number's spelling. Raises FaultyRow."""
    return str(value) if isinstance(value, Spelled) else _text(value, "text or a number")


def id_of(value: Any) -> str:
    """Text, or a whole number's spelling. Raises FaultyRow."""
    if isinstance(value, Spelled):
        if _WHOLE.fullmatch(value):
            return str(value)
        raise FaultyRow("is a fraction: use text or whole numbers")
    return _text(value, "text or a whole number")


def _message(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise FaultyRow(f"has a message that is {named(value)}: use {{role, content}}")
    # A Parquet file has every field in every message, null where a message lacks it.
    message = {str(key): held for key, held in cast("dict[Any, Any]", value).items() if held is not None}
    if unknown := set(message) - {"role", "content"}:
        raise FaultyRow(f"has a message with {len(unknown)} fields beside role and content")
    if message.get("role") not in ROLES:
        raise FaultyRow(f"has a message whose role is none of {', '.join(ROLES)}")
    try:
        return {"role": message["role"], "content": _text(message.get("content"), "text")}
    except FaultyRow as fault:
        raise FaultyRow(f"has a message whose content {fault}") from None


def _text(value: Any, wanted: str) -> str:
    if not isinstance(value, str) or isinstance(value, Spelled):
        raise FaultyRow(f"is {named(value)}: use {wanted}")
    if not value.strip():
        raise FaultyRow("is blank")
    if _SURROGATE.search(value):
        raise FaultyRow("has half of a surrogate pair (\\ud800 to \\udfff), which no file can store as text")
    return value


def named(value: Any) -> str:
    """What kind of thing a value is, never what it holds."""
    if value is None:
        return "null"
    if isinstance(value, Spelled):
        return "a number"
    kinds = {bool: "true or false", list: "a list", dict: "an object", str: "text", bytes: "bytes"}
    return kinds.get(cast("type[Any]", type(value)), f"a {type(value).__name__}")
