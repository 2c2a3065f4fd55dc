"""Comparing what programs print and return with what is expected, at a cost that the expected value bounds."""

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from papo.sandbox import transfer
from papo.sandbox.transfer import is_a

SHORTEST_BOUND = 4096
"""Bytes for what every reply may hold, such as the name of an exception."""
OF_A_VALUE = 64
"""Bytes that the form of a number or a list may be longer than its JSON."""
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_NO_NUMBER = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE | re.ASCII)
_LONGEST_NUMBER = 400


def longest_reply(expected: Any) -> int:
    """Bytes of the longest reply that may hold the expected value; a longer one is another value, and is not read."""
    return SHORTEST_BOUND + len(json.dumps(expected)) + OF_A_VALUE * _values(expected)


def _values(found: Any) -> int:
    inner = found.values() if is_a(found, dict) else found if is_a(found, list) else ()
    return 1 + sum(_values(item) for item in inner)


def matches(form: Any, expected: Any, tolerance: float) -> bool:
    """Whether what came back (`papo.sandbox.transfer`) is the expected JSON value.

    A tuple is a list, as JSON has none; an integer may be an equal float; a boolean is no number. The expected value
    leads: what is of another kind or length is left at once.
    """
    if expected is None or is_a(expected, bool, str):
        return type(form) is type(expected) and form == expected
    if is_a(expected, int, float):
        number = _number(form)
        return number is not None and close(number, expected, tolerance)
    letter, body = next(iter(form.items())) if is_a(form, dict) and len(form) == 1 else ("l", form)
    if not is_a(body, list) or len(body) != len(expected):
        return False
    if is_a(expected, list):
        pairs = zip(body, expected, strict=True)
        return letter in ("l", "t") and all(matches(one, other, tolerance) for one, other in pairs)
    # Their keys are looked for among the expected ones, so that none of theirs fills a table.
    known = [
        pair for pair in body if is_a(pair, list) and len(pair) == 2 and is_a(pair[0], str) and pair[0] in expected
    ]
    same_keys = letter == "d" and len(known) == len(body) == len({key for key, _ in known})
    return same_keys and all(matches(item, expected[key], tolerance) for key, item in known)


def _number(form: Any) -> int | float | None:
    if is_a(form, int, float):
        return form
    body: Any = form.get("i") if is_a(form, dict) and len(form) == 1 else None
    try:
        return int(body, 16) if is_a(body, str) and len(body) <= transfer.LONGEST_NUMBER else None
    except ValueError:
        return None


def same_text(found: str, expected: str, *, tolerance: float = 0.0) -> bool:
    """Equal line by line, by the words of each.

    Space within, around and after them, and blank first and last lines, are free. Words that are decimal numbers are
    compared by value where one has a point or an exponent.
    """
    found, expected = found.strip(), expected.strip()
    if found.count("\n") != expected.count("\n"):
        return False
    lines = zip(_lines(found), _lines(expected), strict=True)
    return all(_same_line(one, other.split(), tolerance) for one, other in lines)


def _lines(text: str) -> Iterator[str]:
    """One at a time: a list of millions would cost more than the text."""
    begin = 0
    while (end := text.find("\n", begin)) >= 0:
        yield text[begin:end]
        begin = end + 1
    yield text[begin:]


def _same_line(found: str, words: list[str], tolerance: float) -> bool:
    own = found.split(None, len(words))
    return len(own) == len(words) and all(_same_word(a, b, tolerance) for a, b in zip(own, words, strict=True))


def _same_word(one: str, other: str, tolerance: float) -> bool:
    if one == other:
        return True
    if max(len(one), len(other)) > _LONGEST_NUMBER:
        return False
    if _NO_NUMBER.fullmatch(one) and _NO_NUMBER.fullmatch(other):
        return close(float(one), float(other), 0.0)
    if not (_NUMBER.fullmatch(one) and _NUMBER.fullmatch(other)):
        return False
    if re.search(r"[.eE]", one + other) and Decimal(one) == Decimal(other):
        return True
    return tolerance > 0 and close(float(one), float(other), tolerance)


def close(one: int | float, other: int | float, tolerance: float) -> bool:
    """Within `tolerance`, absolute or as a share of `other`; of what is no finite number, only the same."""
    try:
        if one == other or (math.isnan(one) and math.isnan(other)):
            return True
        return math.isfinite(one) and math.isfinite(other) and abs(one - other) <= tolerance * max(1.0, abs(other))
    except OverflowError:
        return False
