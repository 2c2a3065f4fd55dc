"""What can be said of expressions exactly and cheaply: folding of rational numbers, one order of terms and factors.

Everything here is bounded: numbers by their bits, factorials and binomials by their argument. What is beyond stays as
it is written, so that identical huge towers are still identical.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from papo.verifiers.powers import rational_power
from papo.verifiers.syntax import Node, Num, Op, Sym, is_container, number, shown

LARGEST_FACTORIAL = 3000
_MINUS_ONE = number(-1)


def fold(node: Node) -> Node:
    """The node with rational parts worked out, signs and quotients as products, and terms and factors in one order."""
    if not isinstance(node, Op):
        return node
    args = tuple(map(fold, node.args))
    rule = _RULES.get(node.kind)
    return rule(args) if rule is not None else _other(Op(node.head, args))


def equal_by_form(first: Node, second: Node) -> bool | None:
    """Whether two folded expressions are equal, as far as their form shows: None where it does not."""
    if first == second:
        return True
    return False if isinstance(first, Num) and isinstance(second, Num) else None


def _add(args: tuple[Node, ...]) -> Node:
    terms: dict[Node, Fraction] = {}
    for term in _flat("add", args):
        factor, rest = _coefficient(term)
        terms[rest] = terms.get(rest, Fraction(0)) + factor
    kept = [_scaled(factor, rest) for rest, factor in terms.items() if factor]
    return _joined("add", kept, empty=number(0))


def _scaled(factor: Fraction, rest: Node) -> Node:
    if rest == _ONE:
        return Num(factor)
    return rest if factor == 1 else _joined("mul", [Num(factor), *_flat("mul", (rest,))], empty=_ONE)


def _coefficient(term: Node) -> tuple[Fraction, Node]:
    if isinstance(term, Num):
        return term.value, _ONE
    if isinstance(term, Op) and term.head == "mul":
        numbers = [part for part in term.args if isinstance(part, Num)]
        rest: list[Node] = [part for part in term.args if not isinstance(part, Num)]
        return math.prod((part.value for part in numbers), start=Fraction(1)), _joined("mul", rest, empty=_ONE)
    return Fraction(1), term


def _mul(args: tuple[Node, ...]) -> Node:
    factor = Fraction(1)
    powers: dict[Node, Node] = {}
    for part in _flat("mul", args):
        if isinstance(part, Num):
            factor *= part.value
            continue
        base, exponent = (part.args[0], part.args[1]) if isinstance(part, Op) and part.head == "pow" else (part, _ONE)
        # Rational powers of a number are kept apart: √2·√2 is left to the engines, 2·√2 to the form.
        same = powers.get(base)
        powers[base] = exponent if same is None else _add((same, exponent))
    if factor == 0:
        return number(0)
    parts = [_power((base, exponent)) for base, exponent in powers.items()]
    numbers = [part for part in parts if isinstance(part, Num)]
    factor *= math.prod((part.value for part in numbers), start=Fraction(1))
    rest = [part for part in parts if not isinstance(part, Num)]
    if any(isinstance(part, Op) and part.head == "mul" for part in rest):
        return _mul((Num(factor), *rest))
    return _joined("mul", [*([Num(factor)] if factor != 1 else []), *rest], empty=_ONE)


def _power(args: tuple[Node, ...]) -> Node:
    base, exponent = args
    if _ONE in (exponent, base):
        return base
    if isinstance(exponent, Num):
        if exponent.value == 0 and base != number(0):
            return _ONE
        if isinstance(base, Num) and (found := rational_power(base.value, exponent.value)) is not None:
            return Num(found)
        if isinstance(base, Op) and base.head == "pow" and exponent.value.denominator == 1:
            return _power((base.args[0], _mul((base.args[1], exponent))))
        if isinstance(base, Op) and base.head == "mul" and exponent.value.denominator == 1:
            return _mul(tuple(_power((part, exponent)) for part in base.args))
    return Op("pow", (base, exponent))


def _factorial(args: tuple[Node, ...]) -> Node:
    (inner,) = args
    whole = isinstance(inner, Num) and inner.value.denominator == 1 and 0 <= inner.value <= LARGEST_FACTORIAL
    return number(math.factorial(int(inner.value))) if whole and isinstance(inner, Num) else Op("fact", args)


def _binomial(args: tuple[Node, ...]) -> Node:
    if all(
        isinstance(part, Num) and part.value.denominator == 1 and 0 <= part.value <= LARGEST_FACTORIAL for part in args
    ):
        top, bottom = (int(part.value) for part in args if isinstance(part, Num))
        return number(math.comb(top, bottom))
    return Op("binom", args)


def _rounding(head: str, rounded: Callable[[Fraction], int]) -> Callable[[tuple[Node, ...]], Node]:
    def rule(args: tuple[Node, ...]) -> Node:
        (inner,) = args
        return number(rounded(inner.value)) if isinstance(inner, Num) else Op(head, args)

    return rule


def _absolute(args: tuple[Node, ...]) -> Node:
    (inner,) = args
    return Num(abs(inner.value)) if isinstance(inner, Num) else Op("abs", args)


def _root(args: tuple[Node, ...]) -> Node:
    index, inner = args
    if isinstance(index, Num) and index.value > 0:
        return _power((inner, Num(1 / index.value)))
    return Op("root", args)


def _other(node: Op) -> Node:
    if node.head == "unit:degree":
        return _mul((Num(Fraction(1, 180)), Sym("pi"), node.args[0]))
    if node.head == "call:exp":
        return _power((Sym("e"), node.args[0]))
    if node.head in ("call:max", "call:min", "call:gcd", "call:lcm"):
        items = node.args[0].args if isinstance(node.args[0], Op) and node.args[0].head == "tuple" else node.args
        values = [item.value for item in items if isinstance(item, Num)]
        if len(values) == len(items) and (node.parameter in ("max", "min") or all(v.denominator == 1 for v in values)):
            whole = [v.numerator for v in values]
            rules = {"max": lambda: max(values), "min": lambda: min(values)}
            found = rules[node.parameter]() if node.parameter in rules else getattr(math, node.parameter)(*whole)
            return Num(Fraction(found))
    return node


def without_quotients(node: Node) -> Node:
    """A folded sum times the denominators of its terms: what vanishes where the sum does, poles apart."""
    terms = _flat("add", (node,))
    highest: dict[Node, Fraction] = {}
    for term in terms:
        for part in _flat("mul", (term,)):
            if isinstance(part, Op) and part.head == "pow" and isinstance(part.args[1], Num) and part.args[1].value < 0:
                base, power = part.args[0], -part.args[1].value
                highest[base] = max(highest.get(base, Fraction(0)), power)
    if not highest:
        return node
    factors = tuple(_power((base, Num(power))) for base, power in highest.items())
    return _add(tuple(_mul((term, *factors)) for term in terms))


def _flat(head: str, args: tuple[Node, ...]) -> list[Node]:
    found: list[Node] = []
    for part in args:
        found += part.args if isinstance(part, Op) and part.head == head else (part,)
    return found


def _joined(head: str, parts: list[Node], *, empty: Node) -> Node:
    if not parts:
        return empty
    ordered = sorted(parts, key=lambda part: (not isinstance(part, Num), shown(part)))
    return ordered[0] if len(ordered) == 1 else Op(head, tuple(ordered))


def _product_of_containers(args: tuple[Node, ...]) -> bool:
    return any(map(is_container, args))


_ONE = number(1)
_RULES: dict[str, Callable[[tuple[Node, ...]], Node]] = {
    "paren": lambda args: args[0],
    "add": _add,
    "mul": lambda args: Op("mul", args) if _product_of_containers(args) else _mul(args),
    "neg": lambda args: _mul((_MINUS_ONE, args[0])),
    "div": lambda args: _mul((args[0], _power((args[1], _MINUS_ONE)))),
    "pow": _power,
    "root": _root,
    "percent": lambda args: _mul((Num(Fraction(1, 100)), args[0])),
    "fact": _factorial,
    "binom": _binomial,
    "abs": _absolute,
    "floor": _rounding("floor", math.floor),
    "ceil": _rounding("ceil", math.ceil),
}
