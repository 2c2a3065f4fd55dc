"""Whether expressions with symbols are equal, or equations proportional, by their values at addressed points."""

import random
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from papo.verifiers.functions import Undefined
from papo.verifiers.numeric import Evaluator, Values, agree
from papo.verifiers.syntax import Node, Num, Op, Sym, TooLarge, symbols_of, walk

ENOUGH = 5
"""Points at which both sides have a value that are asked for."""
_INTERVALS = (
    (0.1, 0.9), (1.1, 3.0), (-0.9, -0.1), (0.1, 0.9), (1.1, 3.0), (-3.0, 3.0), (3.0, 9.0), (-3.0, 3.0), (-0.9, 0.9),
    (0.1, 5.0), (1.0, 2.0), (-9.0, 9.0), (0.1, 0.5), (1.5, 2.5),
)  # fmt: skip
_WIDE = (
    (-50.0, 50.0), (-1000.0, 1000.0), (20.0, 100.0), (-100.0, -20.0), (100.0, 1e4), (-1e4, -100.0), (-50.0, 50.0),
)  # fmt: skip
"""Further points for expressions made of pieces (|x − 20| is 20 − x for a while)."""
_WHOLE_POINTS = 60
"""Points for roundings: ⌊√n⌋ and ⌊√(n−1)⌋ differ at few numbers."""
_MOST_SYMBOLS = 40


class Undecided(Exception):
    """No engine could tell; not the same as different."""


def equal_at_points(gold: Node, answer: Node) -> bool:
    """Whether both agree wherever both are real. Raises Undecided where they hardly ever are.

    A root that is not real on one side only (√a·√b and √(ab) for negative a, b) is passed over; a logarithm that is not
    real on one side only (ln x and ln |x|) makes them different.
    """
    names = sorted(symbols_of(gold) | symbols_of(answer))
    if len(names) > _MOST_SYMBOLS:
        raise Undecided(f"{len(names)} symbols")
    imaginary = has_imaginary(gold, answer)
    drawn = list(points(names, gold, answer))
    enough = len(drawn) if names and _has_pieces(gold, answer) else ENOUGH + len(names) if names else 1
    for complex_values in (imaginary, True):
        seen = 0
        for values in drawn:
            causes = [_cause(side, values, complex_values) for side in (gold, answer)]
            if causes == [None, None]:
                if not agree(gold, answer, values, complex_values=complex_values):
                    return False
                seen += 1
            elif "log" in causes and None in causes:
                return False
            if seen >= enough:
                return True
        if seen >= ENOUGH - 2:
            return True
    raise Undecided("hardly any real value")


def proportional_at_points(gold: Node, answer: Node, *, positive: bool) -> bool:
    """Whether answer = c · gold with one constant c ≠ 0 (c > 0 if `positive`). Raises Undecided."""
    names = sorted(symbols_of(gold) | symbols_of(answer))
    if symbols_of(gold) != symbols_of(answer) or len(names) > _MOST_SYMBOLS:
        return False
    ratios: list[Any] = []
    for values in points(names, gold, answer):
        use = Evaluator(400, values, complex_values=has_imaginary(gold, answer))
        try:
            first, second = use(gold), use(answer)
        except (Undefined, TooLarge):
            continue
        if not first or not second:
            if first or second:
                return False
            continue
        ratio = second / first
        if ratios and abs(ratio - ratios[0]) > abs(ratios[0]) * use.context.ldexp(1, -200):
            return False
        ratios.append(ratio)
        if len(ratios) > ENOUGH + len(names):
            break
    if len(ratios) < ENOUGH - 1:
        raise Undecided("hardly any real value")
    return not positive or (not getattr(ratios[0], "imag", 0) and ratios[0] > 0)


def points(names: Iterable[str], *nodes: Node) -> Iterator[Values]:
    """Points for these symbols, always the same ones; symbols that are whole numbers get those from 1 on."""
    ordered = list(names)
    whole = frozenset[str]().union(*map(whole_symbols, nodes))
    intervals = _INTERVALS + (_WIDE if _has_pieces(*nodes) else ())
    if whole and _has_heads(("floor", "ceil"), *nodes):
        intervals = (_INTERVALS * _WHOLE_POINTS)[:_WHOLE_POINTS]
    for place, (low, high) in enumerate(intervals):
        found: dict[str, Fraction] = {}
        for order, name in enumerate(ordered):
            draw = random.Random(f"{name} {place}")
            if name in whole:
                # The first runs through all numbers, so that none of a rounding's steps is missed.
                found[name] = Fraction(place + 1 if order == 0 else draw.randint(1, 4) + place // 2)
            else:
                found[name] = Fraction(round(draw.uniform(low, high) * 9973), 9973) or Fraction(1, 7)
        yield found


def _has_pieces(*nodes: Node) -> bool:
    """Whether an expression may be made of pieces: roundings, absolute values, roots, inverse functions."""
    if _has_heads(("floor", "ceil", "abs", "call:max", "call:min", "call:sign"), *nodes):
        return True
    return any(
        isinstance(part, Op)
        and (
            part.head.startswith("call:arc")
            or (part.head == "pow" and isinstance(part.args[1], Num) and part.args[1].value.denominator != 1)
        )
        for node in nodes
        for part in walk(node)
    )


def _has_heads(heads: tuple[str, ...], *nodes: Node) -> bool:
    return any(isinstance(part, Op) and part.head in heads for node in nodes for part in walk(node))


def whole_symbols(node: Node) -> frozenset[str]:
    """Symbols that only make sense as whole numbers: in bounds, factorials, roundings, exponents of −1."""
    found = frozenset[str]()
    for part in walk(node):
        if not isinstance(part, Op):
            continue
        if part.kind in ("fact", "binom") or (part.kind in ("floor", "ceil") and _may_be_broken(part)):
            found |= frozenset[str]().union(*map(symbols_of, part.args))
        elif part.kind in ("sum", "prod"):
            found |= symbols_of(part.args[0]) | symbols_of(part.args[1])
        elif part.kind == "pow" and isinstance(part.args[0], Num) and part.args[0].value < 0:
            found |= symbols_of(part.args[1])
    return found


def _may_be_broken(rounded: Op) -> bool:
    """Whether what is rounded is no whole number for all whole symbols: ⌊n/2⌋, not ⌊x⌋."""
    whole = (
        isinstance(part, Sym)
        or (isinstance(part, Num) and part.value.denominator == 1 and part.value >= 0)
        or (isinstance(part, Op) and part.head in ("add", "mul", "pow"))
        for part in walk(rounded.args[0])
    )
    return not all(whole)


def has_imaginary(*nodes: Node) -> bool:
    """Whether i occurs."""
    return any(getattr(part, "name", "") == "i" for node in nodes for part in walk(node))


def _cause(node: Node, values: Values, complex_values: bool) -> str | None:
    """Why the node has no value at a point; None if it has one. Raises TooLarge."""
    try:
        Evaluator(120, values, complex_values=complex_values)(node)
    except Undefined as undefined:
        return undefined.cause
    except TooLarge:
        if not values:
            raise
        return "large"
    return None
