"""Equations and inequalities as one expression that is compared with zero."""

from papo.verifiers.exact import fold
from papo.verifiers.syntax import Node, Op, is_container


def minus(first: Node, second: Node) -> Node:
    """first − second."""
    return fold(Op("add", (first, Op("neg", (second,)))))


def difference(relation: Op) -> Node:
    """The left side of a relation minus its right side."""
    return minus(relation.args[0], relation.args[1])


def standard(relation: Op) -> tuple[str, Node] | None:
    """A relation of two sides as (sign, left − right), with < and ≤ only."""
    sign = relation.parameter
    if len(relation.args) != 2 or any(map(is_container, relation.args)):
        return None
    if sign in (">", "≥"):
        return {">": "<", "≥": "≤"}[sign], minus(relation.args[1], relation.args[0])
    return sign, difference(relation)
