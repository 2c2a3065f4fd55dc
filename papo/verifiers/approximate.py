"""Values of real expressions as floats: cheap, safe and only for putting things in order."""

import cmath
import math
from collections.abc import Callable

from papo.verifiers.syntax import Node, Num, Sym

_CLOSE = 0.01


def approximate(node: Node) -> float:
    """The value of a folded real expression as a float, for putting endpoints in order. Raises ValueError."""
    try:
        found = _complex(node)
    except (OverflowError, ZeroDivisionError, TypeError, RecursionError):
        raise ValueError("no finite value") from None
    if abs(found.imag) > 1e-9 * max(1.0, abs(found.real)):
        raise ValueError("not real")
    return found.real


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
    """Whether one is a rounded form of the other, as 3.14 is of 22/7."""
    try:
        left, right = approximate(first), approximate(second)
    except ValueError:
        return False
    return abs(left - right) <= _CLOSE * max(abs(left), abs(right))
