"""What each head of an expression means as a number: powers, logarithms, factorials, roundings, sums, integrals."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from papo.verifiers.syntax import Node, Num, Op, Sym, TooLarge

LARGEST_EXPONENT = 20_000
"""Bits before or after the point that a value may have."""
MOST_TERMS = 5_000
"""Of all sums and products of an expression together, each worked out term by term."""
_ROUGH_ERROR = 1e-6
_MINUS_INFINITY = Op("mul", (Num(Fraction(-1)), Sym("infty")))


class Undefined(ValueError):
    """The expression has no real value here; `cause` is the head of what has none."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


@runtime_checkable
class Use(Protocol):
    """The evaluation that a rule is part of."""

    context: Any
    """mpmath's, at the precision in use."""
    rough: bool
    """Integrals are worked out too, by quadrature."""

    def __call__(self, node: Node) -> Any: ...

    def noted(self, value: Any) -> Any: ...

    def is_complex(self, value: Any) -> bool: ...

    def real(self, value: Any, cause: str) -> Any: ...

    def at(self, name: str, value: Any, body: Node) -> Any: ...


def _power(use: Use, parts: list[Any]) -> Any:
    base, exponent = parts
    context = use.context
    if not base:
        if context.re(exponent) <= 0:
            raise Undefined("pow")
        return base
    size = abs(context.mag(base)) + 1
    if abs(exponent) * size > LARGEST_EXPONENT:
        raise TooLarge("a power")
    if not use.is_complex(base) and base < 0 and not context.isint(exponent):
        return _odd_root(use, base, exponent)
    return use.real(context.power(base, exponent), "pow")


def _odd_root(use: Use, base: Any, exponent: Any) -> Any:
    """The real power of a negative number whose exponent is a quotient with an odd denominator."""
    context = use.context
    for degree in (3, 5, 7, 9, 11):
        top = context.nint(exponent * degree)
        if abs(exponent * degree - top) < context.mpf(2) ** (-context.prec // 2):
            found = context.power(-base, exponent)
            return -found if int(top) % 2 else found
    return use.real(context.power(base, exponent), "root")


def _log(use: Use, parts: list[Any]) -> Any:
    base, argument = parts
    context = use.context
    if not argument or not base or base == 1:
        raise Undefined("log")
    return use.real(context.log(argument) / context.log(base), "log")


def _factorial(use: Use, parts: list[Any]) -> Any:
    (value,) = parts
    if use.is_complex(value) or abs(value) > 1500:
        raise TooLarge("a factorial")
    if value < 0 and use.context.isint(value):
        raise Undefined("fact")
    return use.context.factorial(value)


def _binomial(use: Use, parts: list[Any]) -> Any:
    if any(map(use.is_complex, parts)):
        raise Undefined("binom")
    if all(map(use.context.isint, parts)):
        return _whole_binomial(use, *map(int, parts))
    if any(abs(part) > 1500 for part in parts):
        raise TooLarge("a binomial")
    return use.context.binomial(*parts)


def _whole_binomial(use: Use, top: int, bottom: int) -> Any:
    if bottom < 0 or 0 <= top < bottom:
        return use.context.mpf(0)
    # For a negative top: C(−n, k) = (−1)^k C(n + k − 1, k).
    sign, top = (1, top) if top >= 0 else ((-1) ** (bottom % 2), bottom - top - 1)
    fewer = min(bottom, top - bottom)
    if fewer * top.bit_length() > LARGEST_EXPONENT:
        raise TooLarge("a binomial")
    return use.context.mpf(sign * math.comb(top, fewer))


def arguments(node: Op) -> tuple[Node, ...]:
    """The arguments of a function, those of max, min, gcd, lcm in brackets or not."""
    inner = node.args[0] if len(node.args) == 1 else None
    many = node.head in OF_MANY and isinstance(inner, Op) and inner.head == "tuple"
    return inner.args if many and isinstance(inner, Op) else node.args


def _extreme(rule: Callable[..., Any]) -> Callable[[Use, list[Any]], Any]:
    def found(use: Use, parts: list[Any]) -> Any:
        if any(map(use.is_complex, parts)):
            raise Undefined("max")
        return rule(parts)

    return found


def _divisor(rule: Callable[..., int]) -> Callable[[Use, list[Any]], Any]:
    def found(use: Use, parts: list[Any]) -> Any:
        if any(use.is_complex(part) or not use.context.isint(part) for part in parts):
            raise Undefined("gcd")
        return use.context.mpf(rule(*map(int, parts)))

    return found


def _terms(use: Use, node: Op) -> tuple[int, int]:
    low, high = use(node.args[0]), use(node.args[1])
    if not (use.context.isint(low) and use.context.isint(high)):
        raise Undefined("bound")
    if high - low > MOST_TERMS:
        raise TooLarge("a sum of many terms")
    return int(low), int(high)


def _integral(use: Use, node: Op) -> Any:
    if not use.rough:
        raise Undefined("int")
    low, high = (_bound(use, part) for part in node.args[:2])

    def integrand(value: Any) -> Any:
        return use.at(node.parameter, value, node.args[2])

    found, error = use.context.quad(integrand, [low, high], error=True)
    if error > _ROUGH_ERROR:
        raise Undefined("int")
    return found


def _bound(use: Use, node: Node) -> Any:
    if node == Sym("infty"):
        return use.context.inf
    return -use.context.inf if node == _MINUS_INFINITY else use(node)


def _sum(use: Use, node: Op) -> Any:
    low, high = _terms(use, node)
    return sum((use.at(node.parameter, index, node.args[2]) for index in range(low, high + 1)), use.context.mpf(0))


def _product(use: Use, node: Op) -> Any:
    low, high = _terms(use, node)
    found = use.context.mpf(1)
    for index in range(low, high + 1):
        found = use.noted(found * use.at(node.parameter, index, node.args[2]))
    return found


def _multiplied(use: Use, parts: list[Any]) -> Any:
    found = use.context.mpf(1)
    for part in parts:
        found = use.noted(found * part)
    return found


def _rounded(name: str) -> Callable[[Use, list[Any]], Any]:
    def rule(use: Use, parts: list[Any]) -> Any:
        (value,), context = parts, use.context
        if use.is_complex(value):
            raise Undefined(name)
        # What is a whole number but for the last bits is that number: log 8 / log 2. If it is not, more bits tell.
        nearest = context.nint(value)
        noise = context.ldexp(1, max(0, context.mag(value) if value else 0) + 20 - context.prec)
        return nearest if abs(value - nearest) <= noise else getattr(context, name)(value)

    return rule


FUNCTIONS = {
    name: name for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sign")
} | {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot", "arcsinh": "asinh", "arccosh": "acosh",
     "arctanh": "atanh", "exp": "exp"}  # fmt: skip
OF_MANY = ("call:max", "call:min", "call:gcd", "call:lcm")
PERIODIC = ("sin", "cos", "tan", "cot", "sec", "csc")
SATURATED = ("tanh", "coth", "sinh", "cosh")
"""Functions that come as near to simpler ones as e^−2x."""
RULES: dict[str, Callable[[Use, list[Any]], Any]] = {
    "add": lambda use, parts: sum(parts, use.context.mpf(0)),
    "mul": _multiplied,
    "pow": _power,
    "log": _log,
    "fact": _factorial,
    "binom": _binomial,
    "abs": lambda use, parts: abs(parts[0]),
    "call:abs": lambda use, parts: abs(parts[0]),
    "floor": _rounded("floor"),
    "ceil": _rounded("ceil"),
    "call:max": _extreme(max),
    "call:min": _extreme(min),
    "call:gcd": _divisor(math.gcd),
    "call:lcm": _divisor(math.lcm),
}
BINDERS: dict[str, Callable[[Use, Op], Any]] = {"sum": _sum, "prod": _product, "int": _integral}
