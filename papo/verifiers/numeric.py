"""Values of expressions as numbers of as many bits as are asked for (mpmath), and identity by values at points.

Two expressions without symbols are equal if their difference vanishes at two precisions and goes on falling with the
second. With symbols they are equal if that holds at every drawn point where both are real; points are addressed, so
that a verdict is always the same. Huge powers are never worked out: they raise TooLarge.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from mpmath.ctx_mp import MPContext  # type: ignore[import-untyped]  # mpmath has no types

from papo.verifiers.syntax import Node, Num, Op, Sym, TooLarge

LARGEST_EXPONENT = 20_000
"""Bits before or after the point that a value may have."""
MOST_TERMS = 20_000
"""Of a sum or product that is worked out term by term."""
BITS = (220, 640)
_CONTEXT: Any = MPContext()
"""One for the process, which works on one thing at a time: making one takes longer than using it."""


class Undefined(ValueError):
    """The expression has no real value here; `cause` is the head of what has none."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


Values = Mapping[str, Fraction]


class Evaluator:
    """Values at one point and precision."""

    def __init__(self, bits: int, values: Values, *, complex_values: bool) -> None:
        self.context: Any = _CONTEXT
        self.context.prec = bits
        self._values = dict(values)
        self._complex = complex_values
        self.largest = 1
        """The largest exponent of any part so far, in bits."""

    def __call__(self, node: Node) -> Any:
        """The value. Raises Undefined or TooLarge."""
        return self.noted(self._value(node))

    def noted(self, value: Any) -> Any:
        context = self.context
        if not context.isfinite(value):
            raise Undefined("infinite")
        size = context.mag(value) if value else 0
        if abs(size) > LARGEST_EXPONENT:
            raise TooLarge(f"a value of {size} bits")
        self.largest = max(self.largest, int(size))
        return value

    def _value(self, node: Node) -> Any:
        if isinstance(node, Num):
            return self.context.mpf(node.value.numerator) / node.value.denominator
        if isinstance(node, Sym):
            return self._symbol(node.name)
        if node.kind in _BINDERS:
            return _BINDERS[node.kind](self, node)
        parts = [self(part) for part in node.args]
        rule = _RULES.get(node.head)
        if rule is not None:
            return rule(self, parts)
        name = _FUNCTIONS.get(node.parameter) if node.kind == "call" else None
        if name is None or len(parts) != 1:
            raise Undefined(node.head)
        return self.real(getattr(self.context, name)(parts[0]), node.head)

    def _symbol(self, name: str) -> Any:
        if name in self._values:
            value = self._values[name]
            return self.context.mpf(value.numerator) / value.denominator
        if name == "i":
            return self.context.mpc(0, 1)
        if name not in ("pi", "e"):
            raise Undefined(name)
        return +getattr(self.context, name)

    def is_complex(self, value: Any) -> bool:
        return bool(getattr(value, "imag", 0))

    def real(self, value: Any, cause: str) -> Any:
        """The value, unless it is complex where only real ones are meant."""
        imaginary = getattr(value, "imag", 0)
        if imaginary and not self._complex:
            raise Undefined(cause)
        return value

    def at(self, name: str, value: int, body: Node) -> Any:
        """The value of `body` with a bound variable set."""
        kept = self._values.get(name)
        self._values[name] = Fraction(value)
        try:
            return self(body)
        finally:
            self._values.pop(name)
            if kept is not None:
                self._values[name] = kept


def _power(use: Evaluator, parts: list[Any]) -> Any:
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


def _odd_root(use: Evaluator, base: Any, exponent: Any) -> Any:
    """The real power of a negative number whose exponent is a quotient with an odd denominator."""
    context = use.context
    for degree in (3, 5, 7, 9, 11):
        top = context.nint(exponent * degree)
        if abs(exponent * degree - top) < context.mpf(2) ** (-context.prec // 2):
            found = context.power(-base, exponent)
            return -found if int(top) % 2 else found
    return use.real(context.power(base, exponent), "root")


def _log(use: Evaluator, parts: list[Any]) -> Any:
    base, argument = parts
    context = use.context
    if not argument or not base or base == 1:
        raise Undefined("log")
    return use.real(context.log(argument) / context.log(base), "log")


def _factorial(use: Evaluator, parts: list[Any]) -> Any:
    (value,) = parts
    if use.is_complex(value) or abs(value) > 1500:
        raise TooLarge("a factorial")
    if value < 0 and use.context.isint(value):
        raise Undefined("fact")
    return use.context.factorial(value)


def _binomial(use: Evaluator, parts: list[Any]) -> Any:
    if any(use.is_complex(part) or abs(part) > 1500 for part in parts):
        raise TooLarge("a binomial")
    return use.context.binomial(*parts)


def _terms(use: Evaluator, node: Op) -> tuple[int, int]:
    low, high = use(node.args[0]), use(node.args[1])
    if not (use.context.isint(low) and use.context.isint(high)):
        raise Undefined("bound")
    if high - low > MOST_TERMS:
        raise TooLarge("a sum of many terms")
    return int(low), int(high)


def _sum(use: Evaluator, node: Op) -> Any:
    low, high = _terms(use, node)
    return sum((use.at(node.parameter, index, node.args[2]) for index in range(low, high + 1)), use.context.mpf(0))


def _product(use: Evaluator, node: Op) -> Any:
    low, high = _terms(use, node)
    found = use.context.mpf(1)
    for index in range(low, high + 1):
        found = use.noted(found * use.at(node.parameter, index, node.args[2]))
    return found


def _multiplied(use: Evaluator, parts: list[Any]) -> Any:
    found = use.context.mpf(1)
    for part in parts:
        found = use.noted(found * part)
    return found


def _rounded(name: str) -> Callable[[Evaluator, list[Any]], Any]:
    def rule(use: Evaluator, parts: list[Any]) -> Any:
        if use.is_complex(parts[0]):
            raise Undefined(name)
        return getattr(use.context, name)(parts[0])

    return rule


_FUNCTIONS = {
    name: name for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sign")
} | {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot", "arcsinh": "asinh", "arccosh": "acosh",
     "arctanh": "atanh", "exp": "exp"}  # fmt: skip
_RULES: dict[str, Callable[[Evaluator, list[Any]], Any]] = {
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
}
_BINDERS: dict[str, Callable[[Evaluator, Op], Any]] = {"sum": _sum, "prod": _product}


def agree(first: Node, second: Node, values: Values, *, complex_values: bool) -> bool:
    """Whether both have the same value at a point. Raises Undefined if one has none, TooLarge."""
    gaps: list[Any] = []
    bounds: list[Any] = []
    extra = 0
    for bits in BITS:
        use = Evaluator(bits + extra, values, complex_values=complex_values)
        left, right = use(first), use(second)
        gaps.append(abs(left - right))
        bounds.append(use.context.ldexp(1, use.largest + 60 - bits - extra))
        if not extra and use.largest > 8:
            extra = use.largest
    if gaps[1] == 0:
        return True
    falling = gaps[0] == 0 or gaps[1] < gaps[0] / 2**100
    return bool(gaps[1] <= bounds[1] and falling)
