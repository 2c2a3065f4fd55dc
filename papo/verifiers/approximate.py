"""Values of real expressions as floats: cheap, safe and only for putting things in order."""

import cmath
import math
from collections.abc import Callable
from fractions import Fraction

from papo.verifiers.syntax import Node, Num, Sym

_CLOSE = 0.01
_MOST_PLACES = 40


def approximate(node: Node) -> float:
    """The value of a folded real expression as a float, for putting endpoints in order. Raises ValueError."""
    try:
        found = _complex(node)
    except (OverflowError, ZeroDivisionError, TypeError, RecursionError):
        raise ValueError("no finite value") from None
    if abs(found.imag) > 1e-9 * max(1.0, abs(found.real)):
        raise ValueError("not real")
    return found.real


def _rounds(number: Num, rounded: Num) -> bool:
    """Whether a number has fewer decimal places, or more noughts at its end, and is the other one rounded or cut."""
    places, before = _places(rounded.value), _places(number.value)
    if places is None or (before is not None and before <= places):
        return False
    unit, gap = Fraction(10) ** -places, abs(number.value) - abs(rounded.value)
    return abs(number.value - rounded.value) <= unit / 2 or 0 <= gap < unit


def _places(value: Fraction) -> int | None:
    """How many decimal places a number has, less than none where it ends in noughts; None if no number of them do."""
    whole = value * 10**_MOST_PLACES
    if whole.denominator != 1 or not value:
        return None
    digits = str(abs(whole.numerator))
    return _MOST_PLACES - len(digits) + len(digits.rstrip("0"))


def _complex(node: Node) -> complex:
    if isinstance(node, Num):
        return complex(float(node.value))
    if isinstance(node, Sym):
        if node.name not in _CONSTANTS:
            raise ValueError(f"{node.name} has no value")
        return _CONSTANTS[node.name]
    rule = _RULES.get(node.head)
    if rule is None:
        raise ValueError(f"{node.head} has no value here")
    return rule([_complex(part) for part in node.args])


_RULES: dict[str, Callable[[list[complex]], complex]] = {
    "add": lambda parts: sum(parts, 0j),
    "mul": lambda parts: math.prod(parts, start=1 + 0j),
    "pow": lambda parts: parts[0] ** parts[1],
    "log": lambda parts: cmath.log(parts[1]) / cmath.log(parts[0]),
    "call:sin": lambda parts: cmath.sin(parts[0]),
    "call:cos": lambda parts: cmath.cos(parts[0]),
    "call:tan": lambda parts: cmath.tan(parts[0]),
}
_CONSTANTS = {"pi": complex(math.pi), "e": complex(math.e), "i": 1j, "infty": complex(math.inf)}


def roughly_equal(first: Node, second: Node) -> bool:
    """Whether the second is the first one rounded, as 3.14 is 22/7 and 700 is 697, but 701 is not 700."""
    if isinstance(first, Num) and isinstance(second, Num) and not _rounds(first, second):
        return False
    try:
        left, right = approximate(first), approximate(second)
    except ValueError:
        return False
    return abs(left - right) <= _CLOSE * max(abs(left), abs(right))
