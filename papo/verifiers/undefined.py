"""Expressions without a value, whose parts would cancel: ∞ − ∞, 0 · ∞, 0/0, x/(x − x)."""

from fractions import Fraction

from papo.verifiers.exact import fold
from papo.verifiers.regions import INFINITY
from papo.verifiers.syntax import Node, Num, Op, Sym, Unreadable, walk

_ZERO = Num(Fraction(0))
_PARTIAL = frozenset({"div", "log", "pow"})
_BINDERS = ("sum", "prod", "int", "lim")


def refuse_undefined(tree: Op) -> None:
    """Raises Unreadable for infinity inside an expression, division by zero, and a logarithm or negative power of 0."""
    parts = list(walk(tree))
    if INFINITY in parts and any(isinstance(part, Op) and _has_infinite_part(part) for part in parts):
        raise Unreadable("infinity inside an expression")
    for part in parts:
        if isinstance(part, Op) and part.head in _PARTIAL and any(map(_vanishes, _not_to_vanish(part))):
            raise Unreadable("a division by zero, or what is like it")


def _has_infinite_part(part: Op) -> bool:
    return INFINITY in part.args and part.head not in ("neg", "paren", "pm") and part.kind not in _BINDERS


def _vanishes(node: Node) -> bool:
    if isinstance(node, Sym):
        return False
    return (node if isinstance(node, Num) else fold(node)) == _ZERO


def _not_to_vanish(part: Op) -> tuple[Node, ...]:
    if part.head in ("div", "log"):
        return part.args[1:]
    exponent = part.args[1] if isinstance(part.args[1], Num) else fold(part.args[1])
    return part.args[:1] if isinstance(exponent, Num) and exponent.value <= 0 else ()
