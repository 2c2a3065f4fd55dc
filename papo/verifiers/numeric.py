"""Values of expressions as numbers of as many bits as are asked for (mpmath), and identity by values at points.

Two expressions without symbols are equal if their difference vanishes at two precisions and goes on falling with the
second. With symbols they are equal if that holds at every drawn point where both are real; points are addressed, so
that a verdict is always the same. Huge powers are never worked out: they raise TooLarge.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from mpmath.ctx_mp import MPContext  # type: ignore[import-untyped]  # mpmath has no types

from papo.verifiers.functions import (
    BINDERS,
    FUNCTIONS,
    LARGEST_EXPONENT,
    MOST_TERMS,
    OF_MANY,
    PERIODIC,
    RULES,
    SATURATED,
    Undefined,
    arguments,
)
from papo.verifiers.syntax import Node, Num, Op, Sym, TooLarge

BITS = (220, 640)
MOST_BITS = 100_000
_SMALL = 8
_ROUGH_GAP = 1e-3
_CONTEXT: Any = MPContext()
"""One for the process, which works on one thing at a time: making one takes longer than using it."""


Value = Fraction | Op
"""Of a symbol: a number, or an expression such as π/2."""
Values = Mapping[str, Value]


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
        self.smallest = 1
        """Likewise of what is small: 10^−300 has about 1000."""

    def __call__(self, node: Node) -> Any:
        """The value. Raises Undefined or TooLarge."""
        return self.noted(self._value(node))

    def noted(self, value: Any) -> Any:
        context = self.context
        if not context.isfinite(value):
            raise Undefined("infinite")
        size = context.mag(value) if value else 0
        if size > self.largest or -size > self.smallest:
            self.note_size(int(size))
        return value

    def note_size(self, bits: int) -> None:
        """Take note of how large (or, negative, how small) something in the value is. Raises TooLarge."""
        if abs(bits) > LARGEST_EXPONENT:
            raise TooLarge(f"a value of {bits} bits")
        self.largest, self.smallest = max(self.largest, bits), max(self.smallest, -bits)

    @property
    def bits_needed(self) -> int:
        """The precision that tells values of such sizes apart: what is small counts with its powers."""
        sizes = self.largest + self.smallest
        return 200 + min(8 * sizes, max(2 * sizes, 16_000))

    def _value(self, node: Node) -> Any:
        if isinstance(node, Num):
            top, bottom = node.value.numerator, node.value.denominator
            if bottom == 1:
                return self.context.mpf(top)
            self.smallest = max(self.smallest, bottom.bit_length())
            return self.context.mpf(top) / bottom
        if isinstance(node, Sym):
            return self._symbol(node.name)
        if node.kind in BINDERS:
            return BINDERS[node.kind](self, node)
        parts = [self(part) for part in (arguments(node) if node.head in OF_MANY else node.args)]
        rule = RULES.get(node.head)
        if rule is not None:
            return rule(self, parts)
        name = FUNCTIONS.get(node.parameter) if node.kind == "call" else None
        if name is None or len(parts) != 1:
            raise Undefined(node.head)
        if node.parameter in SATURATED:
            # tanh 1000 is 1 less e^−2000: a size that shows nowhere else.
            size = int(abs(self.context.re(parts[0])) * 3) + 1
            self.note_size(-size)
        found = getattr(self.context, name)(parts[0])
        return self.real(self._periodic(found, parts[0]) if name in PERIODIC else found, node.head)

    def _periodic(self, found: Any, argument: Any) -> Any:
        """A sine that is 0 but for the last bits of its argument is 0, and a tangent that is huge has a pole."""
        if self.is_complex(found) or not argument:
            return found
        noise = max(0, int(self.context.mag(argument))) + 20 - self.context.prec
        if found and self.context.mag(found) > -noise:
            raise Undefined("pole")
        tiny = not found or (self.context.mag(found) < noise and self.context.mag(argument) > 0)
        return self.context.mpf(0) if tiny else found

    def _symbol(self, name: str) -> Any:
        if name in self._values:
            value = self._values[name]
            if isinstance(value, Op):
                return self(value)
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
    use = Evaluator(BITS[0], values, complex_values=complex_values)
    rough_gap = abs(use(first) - use(second))
    bits = BITS[1] + (use.largest if use.largest > _SMALL else 0)
    while True:
        use = Evaluator(bits, values, complex_values=complex_values)
        gap = abs(use(first) - use(second))
        if gap > use.context.ldexp(1, use.largest + 60 - bits) or gap > rough_gap / 2**100 > 0:
            return False
        if use.bits_needed <= bits:
            return True
        bits = use.bits_needed
        if bits > MOST_BITS:
            raise TooLarge(f"{bits} bits")
