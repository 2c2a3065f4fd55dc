"""Values of expressions as numbers of as many bits as are asked for (mpmath), and identity by values at points.

Two expressions without symbols are equal if their difference vanishes at two precisions and goes on falling with the
second. With symbols they are equal if that holds at every drawn point where both are real; points are addressed, so
that a verdict is always the same. Huge powers are never worked out: they raise TooLarge.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from mpmath.ctx_mp import MPContext  # type: ignore[import-untyped]  # mpmath has no types

from papo.verifiers.functions import BINDERS, FUNCTIONS, LARGEST_EXPONENT, MOST_TERMS, RULES, Undefined
from papo.verifiers.syntax import Node, Num, Sym, TooLarge

BITS = (220, 640)
_ROUGH_GAP = 1e-3
_CONTEXT: Any = MPContext()
"""One for the process, which works on one thing at a time: making one takes longer than using it."""


Values = Mapping[str, Fraction]


class Evaluator:
    """Values at one point and precision."""

    def __init__(self, bits: int, values: Values, *, complex_values: bool, rough: bool = False) -> None:
        self.context: Any = _CONTEXT
        self.context.prec = bits
        self._values: dict[str, Any] = dict(values)
        self._complex = complex_values
        self.rough = rough
        self._terms_left = MOST_TERMS
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
        if node.kind in BINDERS:
            return BINDERS[node.kind](self, node)
        parts = [self(part) for part in node.args]
        rule = RULES.get(node.head)
        if rule is not None:
            return rule(self, parts)
        name = FUNCTIONS.get(node.parameter) if node.kind == "call" else None
        if name is None or len(parts) != 1:
            raise Undefined(node.head)
        return self.real(getattr(self.context, name)(parts[0]), node.head)

    def _symbol(self, name: str) -> Any:
        if name in self._values:
            value = self._values[name]
            return self.context.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value
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

    def at(self, name: str, value: Any, body: Node) -> Any:
        """The value of `body` with a bound variable set. Raises TooLarge beyond MOST_TERMS of them."""
        self._terms_left -= 1
        if self._terms_left < 0:
            raise TooLarge("a sum of many terms")
        kept = self._values.get(name)
        self._values[name] = value
        try:
            return self(body)
        finally:
            del self._values[name]
            if kept is not None:
                self._values[name] = kept


def clearly_differ(first: Node, second: Node) -> bool:
    """Whether rough values, of integrals by quadrature, already tell two expressions without symbols apart."""
    use = Evaluator(60, {}, complex_values=False, rough=True)
    try:
        left, right = use(first), use(second)
    except (Undefined, TooLarge):
        return False
    return bool(abs(left - right) > _ROUGH_GAP * max(1, abs(left)))


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
