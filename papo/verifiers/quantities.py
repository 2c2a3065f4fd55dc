"""Numbers apart from their unit, percent sign or name; constants of integration and variables under other names."""

import re
from collections.abc import Sequence
from fractions import Fraction

from papo.verifiers.exact import fold
from papo.verifiers.syntax import Node, Num, Op, Sym, is_container, number, symbols_of
from papo.verifiers.units import is_letter_unit, measure

_FUNCTION = re.compile(r"(\w+)\(([a-zA-Z]\w*)\)")
_INDEXED = re.compile(r"_?\d+$")
_CONSTANT = re.compile(r"[A-DK](?:_?\d)?|c_?\d")
_PER_DEGREE = Op("mul", (Num(Fraction(1, 180)), Sym("pi")))


def without_percent(node: Node) -> tuple[Node, bool]:
    """The number before a percent sign, and whether there is one."""
    marked = isinstance(node, Op) and node.head == "percent"
    return (node.args[0] if marked and isinstance(node, Op) else node), marked


def with_unit(node: Node) -> tuple[Node, str | None]:
    """The number and its unit; 5m as five metres, 5m/s as metres a second, where the other side asks for a unit."""
    if isinstance(node, Op) and node.kind == "unit":
        return node.args[0], node.parameter
    if not (isinstance(node, Op) and node.head == "mul" and isinstance(node.args[0], Num)):
        return node, None
    letters: list[str] = []
    for part in node.args[1:]:
        base, power = part.args if isinstance(part, Op) and part.head == "pow" else (part, number(1))
        if not (isinstance(base, Sym) and isinstance(power, Num) and is_letter_unit(base.name)):
            return node, None
        letters.append(f"{base.name}^{power.value}")
    return node.args[0], " ".join(letters)


def radians(value: Node, unit: str | None) -> Node | None:
    """A number of degrees in radians; None for any other unit."""
    if unit is None or is_container(value) or measure(unit) != (((("angle", 1)),), Fraction(1)):
        return None
    return fold(Op("mul", (value, _PER_DEGREE)))


def times(value: Node, factor: Fraction) -> Node:
    """The value in another unit."""
    return value if factor == 1 or is_container(value) else fold(Op("mul", (Num(factor), value)))


def free_constants(node: Node) -> frozenset[str]:
    """Symbols that are mostly constants of integration: C, K, A, B, D, C_1, c_2 …"""
    return frozenset(name for name in symbols_of(node) if _CONSTANT.fullmatch(name))


def is_integration(names: Sequence[str]) -> bool:
    """Whether one of these constants is the one that solutions are written with."""
    return any(name[0] in "CcK" for name in names)


def renamed(node: Node, names: dict[str, str]) -> Node:
    """The node with other names for its symbols."""
    if isinstance(node, Sym):
        return Sym(names.get(node.name, node.name))
    return Op(node.head, tuple(renamed(part, names) for part in node.args)) if isinstance(node, Op) else node


def named_value(node: Node) -> tuple[str | None, Node]:
    """x and 5 of x = 5; None and the node itself where it has no name."""
    if isinstance(node, Op) and node.kind == "assign":
        return node.parameter, node.args[0]
    return None, node


def with_variable_of(name: str, other: str, value: Node) -> Node | None:
    """The value of f(n) = … as one of f(z): None where these are not one function of one variable."""
    first, second = _FUNCTION.fullmatch(name), _FUNCTION.fullmatch(other)
    if first is None or second is None or first.group(1) != second.group(1) or is_container(value):
        return None
    return fold(renamed(value, {second.group(2): first.group(2)}))


def roots_of(node: Op) -> Sequence[Node]:
    """The values of x_1 = 1, x_2 = 2, or of a list; none for a system of several unknowns."""
    if node.head != "system":
        return node.args
    letters = {_INDEXED.sub("", item.head) for item in node.args if isinstance(item, Op)}
    return [item.args[0] for item in node.args if isinstance(item, Op)] if len(letters) == 1 else []
