"""Values between processes that do not trust each other: built-in types, in JSON, and nothing else.

None, booleans, integers, floats, text and lists are themselves; other types are an object with one letter. What comes
from a sandbox is read here before anything is done with it; no method of a value that it made is ever called. The file
is also given to the programs inside, so it needs nothing but the standard library.
"""

import builtins
import json
import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

DEEPEST = 100
MOST_KEYS = 20_000
"""Of one set or dict: keys chosen to collide must not hold up who reads them."""
LONGEST_NUMBER = 2**18
"""Hexadecimal digits of an integer."""
LONGEST_LITERAL = 40
"""Characters of a number as JSON has it: whole numbers beyond 64 bits are sent as hexadecimal text."""
DATA_TYPES: tuple[type, ...] = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    list,
    tuple,
    dict,
    set,
    frozenset,
    object,
    type(None),
)
"""What a result may be of the built-in types themselves: none of them does anything."""
SCALARS: tuple[type, ...] = (str, bytes, float, int, complex)
_VIEWS = ("dict_keys", "dict_values", "dict_items")

Keep = Callable[[Any], Mapping[str, Any]]
"""The form of a value of any other type, which stays where it is."""
Hold = Callable[[str, Any], Any]
"""What becomes of such a form."""


class Untransferable(ValueError):
    """The value is of no built-in type, or is too deep or too large."""


def is_a(value: Any, *kinds: type) -> bool:
    """Exactly, not by what it says of itself."""
    return type(value) in kinds


def has(value: Any, method: str) -> bool:
    """Whether its type has the method, whatever it answers itself."""
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]  # a type of anything
    return hasattr(kind, method)


def encode(value: Any, keep: Keep | None = None, depth: int = 0) -> Any:
    """The JSON form. `keep` gives the form of a value of any other type; without it that is an error."""
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
        form = _library_form(value, kind, keep, depth) or keep(value)
    return form


def _library_form(value: Any, kind: Any, keep: Keep, depth: int) -> Any:
    """Of what the standard library or a subclass makes of a built-in type; None for all else."""
    name, form = kind.__name__, None
    if kind is range:
        form = {"r": [hex(value.start), hex(value.stop), hex(value.step)]}
    elif kind is deque:
        form = {"e": [encode(item, keep, depth + 1) for item in value]}
    elif kind.__module__ == "builtins" and name in _VIEWS:
        form = [encode(item, keep, depth + 1) for item in value]
    elif (name, kind.__module__) == ("Fraction", "fractions"):
        form = {"q": [hex(value.numerator), hex(value.denominator)]}
    elif (name, kind.__module__) == ("Decimal", "decimal"):
        form = {"m": str(value)}
    elif isinstance(value, type) and getattr(builtins, value.__name__, None) is value:
        form = {"n": value.__name__}
    elif (base := next((base for base in SCALARS if issubclass(kind, base)), None)) is not None:
        form = encode(unwrapped(base, value), keep, depth)
    return form


def unwrapped(base: Any, value: Any) -> Any:
    """The value of a subclass, not by what that makes of it."""
    return base.__str__(value) if base is str else base.__pos__(value) if hasattr(base, "__pos__") else base(value)


def decode(form: Any, hold: Hold | None = None) -> Any:
    """The value of a JSON form. `hold` makes something of what `keep` gave; without it that is an error."""
    if form is None or is_a(form, bool, str, float, int):
        return form
    if is_a(form, list):
        return [decode(item, hold) for item in form]
    if not is_a(form, dict) or len(form) != 1:
        raise Untransferable("no such form")
    letter = next(iter(form))
    try:
        return _decoded(letter, form[letter], hold)
    except (TypeError, ValueError, LookupError, OverflowError, ArithmeticError) as error:
        raise Untransferable(f"{error}") from error


def _decoded(letter: str, body: Any, hold: Hold | None) -> Any:
    if is_a(body, str, list) and len(body) > {"s": MOST_KEYS, "f": MOST_KEYS, "d": MOST_KEYS, "i": LONGEST_NUMBER}.get(
        letter, sys.maxsize
    ):
        raise Untransferable("too large")
    if letter in HELD and hold is not None:
        return hold(letter, body)
    readers: dict[str, Callable[[], Any]] = {
        "d": lambda: {decode(key, hold): decode(item, hold) for key, item in body},
        "t": lambda: tuple(decode(item, hold) for item in body),
        "s": lambda: {decode(item, hold) for item in body},
        "f": lambda: frozenset(decode(item, hold) for item in body),
        "e": lambda: deque(decode(item, hold) for item in body),
        "a": lambda: iter([decode(item, hold) for item in body]),
        "r": lambda: range(*(int(text, 16) for text in body)),
        "i": lambda: int(body, 16),
        "b": lambda: bytes.fromhex(body),
        "c": lambda: complex(float(body[0]), float(body[1])),
        "q": lambda: _fraction(body),
        "m": lambda: _decimal(body),
    }
    if letter not in readers:
        raise Untransferable("no such form")
    return readers[letter]()


HELD = frozenset("hkgon")
"""Letters of what stays with the candidate: anything, a function, an iterator, a container of its own type, and of a
built-in type by its name."""


def _fraction(body: Any) -> Any:
    from fractions import Fraction  # noqa: PLC0415  # hardly ever needed, and not quick to load

    return Fraction(int(body[0], 16), int(body[1], 16))


def _decimal(body: Any) -> Any:
    from decimal import Decimal  # noqa: PLC0415  # likewise

    return Decimal(body)


def parse(line: bytes) -> Any:
    """The JSON of a line from a sandbox, at a cost that its length bounds. Raises Untransferable for what is wrong.

    No object has more than two names, and no number more digits than a value needs.
    """
    try:
        return json.loads(line, object_pairs_hook=_named, parse_int=_short(int), parse_float=_short(float))
    except (ValueError, RecursionError, MemoryError) as error:
        raise Untransferable(f"{type(error).__name__} in a reply") from error


def _named(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs[:3])
    if len(found) != len(pairs) or len(pairs) > 2:
        raise Untransferable("no such form")
    return found


def _short(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def number(text: str) -> Any:
        if len(text) > LONGEST_LITERAL:
            raise Untransferable("a number is too long")
        return read(text)

    return number
