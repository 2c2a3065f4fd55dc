"""Values between processes that do not trust each other: exact built-in types, in JSON, and nothing else.

None, booleans, integers, floats, text and lists are themselves; other types are an object with one letter. What comes
from a sandbox is read here before anything is done with it; no method of a value that it made is ever called. The file
is also given to the programs inside, so it needs nothing but the standard library.
"""

import json
from collections.abc import Callable
from typing import Any

DEEPEST = 100
MOST_VALUES = 1_000_000
MOST_KEYS = 20_000
"""Of one set or dict: keys chosen to collide must not hold up who reads them."""
LONGEST_NUMBER = 2**18
"""Hexadecimal digits."""


class Untransferable(ValueError):
    """The value is not of exact built-in types, or is too deep or too large."""


def is_a(value: Any, *kinds: type) -> bool:
    """Exactly, not by what it says of itself."""
    return type(value) in kinds


def encode(value: Any, keep: Callable[[Any], int] | None = None, depth: int = 0) -> Any:
    """The JSON form. `keep` takes a value of any other type and returns its number; without it that is an error."""
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]  # a type of anything
    if depth > DEEPEST:
        raise Untransferable(f"deeper than {DEEPEST}")
    form = value
    if kind is int and value.bit_length() > 64:
        form = {"i": hex(value)}
    elif kind in (list, tuple, set, frozenset):
        items = [encode(item, keep, depth + 1) for item in value]
        form = items if kind is list else {kind.__name__[0]: items}
    elif kind is dict or (issubclass(kind, dict) and kind.__module__ == "collections"):
        pairs: Any = dict[Any, Any].items(value)
        form = {"d": [[encode(key, keep, depth + 1), encode(item, keep, depth + 1)] for key, item in pairs]}
    elif kind in (bytes, bytearray):
        form = {"b": value.hex()}
    elif kind is complex:
        form = {"c": [value.real, value.imag]}
    elif value is not None and kind not in (bool, str, float, int):
        if keep is None:
            raise Untransferable(f"no built-in type: {kind.__name__:.80}")
        form = {"h": keep(value)}
    return form


def decode(form: Any, hold: Callable[[int], Any] | None = None) -> Any:
    """The value of a JSON form. `hold` makes something of a number that `keep` gave; without it that is an error."""
    if form is None or is_a(form, bool, str, float, int):
        return form
    if is_a(form, list):
        return [decode(item, hold) for item in form]
    if not is_a(form, dict) or len(form) != 1:
        raise Untransferable("no such form")
    letter = next(iter(form))
    try:
        return _decoded(letter, form[letter], hold)
    except (TypeError, ValueError, LookupError, OverflowError) as error:
        raise Untransferable(f"{error}") from error


def _decoded(letter: str, body: Any, hold: Callable[[int], Any] | None) -> Any:
    if len(body) > MOST_KEYS if letter in "sfd" else letter == "i" and len(body) > LONGEST_NUMBER:
        raise Untransferable("too large")
    if letter == "h" and hold is not None and is_a(body, int):
        return hold(body)
    readers: dict[str, Callable[[], Any]] = {
        "d": lambda: {decode(key, hold): decode(item, hold) for key, item in body},
        "t": lambda: tuple(decode(item, hold) for item in body),
        "s": lambda: {decode(item, hold) for item in body},
        "f": lambda: frozenset(decode(item, hold) for item in body),
        "i": lambda: int(body, 16),
        "b": lambda: bytes.fromhex(body),
        "c": lambda: complex(float(body[0]), float(body[1])),
    }
    if letter not in readers:
        raise Untransferable("no such form")
    return readers[letter]()


def parse(line: bytes) -> Any:
    """The JSON of a line from a sandbox. Raises Untransferable for whatever is wrong with it."""
    try:
        found = json.loads(line)
        check_size(found)
    except (ValueError, RecursionError, MemoryError) as error:
        raise Untransferable(f"{type(error).__name__} in a reply") from error
    return found


def check_size(form: Any) -> None:
    """Raise Untransferable for a form that is too deep or holds too many values."""
    waiting: list[tuple[Any, int]] = [(form, 0)]
    seen = 0
    while waiting:
        at, depth = waiting.pop()
        seen += 1
        if depth > 4 * DEEPEST or seen > MOST_VALUES:
            raise Untransferable("too large")
        if is_a(at, list):
            waiting += [(item, depth + 1) for item in at]
        elif is_a(at, dict):
            waiting += [(item, depth + 1) for item in at.values()]
