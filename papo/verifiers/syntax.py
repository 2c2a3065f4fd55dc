"""Expression trees of answers: three kinds of nodes, nothing that can run.

Heads of `Op`: add, mul, div, pow, neg, root (index, radicand), fact, binom, abs, floor, ceil, log (base, argument), pm
(plus or minus), call:NAME, diff-like binders sum, prod, int, lim; and the containers of answers: paren, tuple, vector,
set, interval:BOUNDS, matrix:ROWS, list, or, and, rel:SIGNS, cup, cap, minus, unit:NAME, percent, text:WORDS.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction


class Unreadable(ValueError):
    """The text is no answer that this package can read; the message says where."""


class TooLarge(ValueError):
    """A value is beyond what is worked out exactly or numerically."""


@dataclass(frozen=True, slots=True)
class Num:
    value: Fraction


@dataclass(frozen=True, slots=True)
class Sym:
    name: str


@dataclass(frozen=True, slots=True)
class Op:
    head: str
    args: tuple["Num | Sym | Op", ...]

    @property
    def kind(self) -> str:
        """The head without its parameter."""
        return self.head.partition(":")[0]

    @property
    def parameter(self) -> str:
        """What stands behind the head's colon."""
        return self.head.partition(":")[2]


Node = Num | Sym | Op
CONSTANTS = frozenset({"pi", "e", "i", "infty"})
"""Symbols with a value of their own."""
PLACES = frozenset({"reals", "integers", "naturals", "rationals", "complexes", "emptyset", "ldots"})
"""Symbols that stand for sets or omissions."""


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


def number(value: int | Fraction) -> Num:
    """A whole number or a fraction as a node."""
    return Num(Fraction(value))


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    pending = [node]
    while pending:
        found = pending.pop()
        yield found
        if isinstance(found, Op):
            pending.extend(found.args)


def symbols_of(node: Node) -> frozenset[str]:
    """Free symbols: constants, places and the variables that a binder introduces are none."""
    if isinstance(node, Sym):
        return frozenset() if node.name in CONSTANTS or node.name in PLACES else frozenset({node.name})
    if isinstance(node, Num):
        return frozenset()
    found = frozenset[str]().union(*map(symbols_of, node.args)) if node.args else frozenset[str]()
    return found - {node.parameter} if node.kind in ("sum", "prod", "int", "lim") else found


def is_container(node: Node) -> bool:
    """Whether the node is more than one expression: a set, an interval, a relation, text …"""
    return isinstance(node, Op) and node.kind in _CONTAINERS


def shown(node: Node) -> str:
    """One spelling of a tree: equal trees have equal spellings."""
    if isinstance(node, Num):
        top, bottom = node.value.numerator, node.value.denominator
        # Decimal digits of huge integers take quadratic time, hexadecimal ones linear.
        if max(top.bit_length(), bottom.bit_length()) > _SHOWN_BITS:
            return f"{top:#x}/{bottom:#x}"
        return str(node.value)
    if isinstance(node, Sym):
        return node.name
    return f"{node.head}({', '.join(map(shown, node.args))})"


_SHOWN_BITS = 2048
_CONTAINERS = frozenset(
    {"tuple", "vector", "set", "interval", "matrix", "list", "or", "and", "rel", "cup", "cap", "minus", "unit"}
    | {"percent", "text", "assign", "system", "region", "based", "ratio", "clock", "several", "pmod"}
)
