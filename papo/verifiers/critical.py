"""Where expressions made of pieces change: the points at which two of them must be compared.

An absolute value changes where its inside vanishes, a rounding where its inside passes a whole number, a binomial where
it stops being zero. These places are looked for on a grid from tiny to huge numbers and closed in on; numbers that the
expressions are written with, small whole numbers and multiples of π are added, as pieces may begin at single points.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

from papo.verifiers.exact import fold
from papo.verifiers.functions import Undefined, arguments
from papo.verifiers.numeric import Evaluator, Value
from papo.verifiers.syntax import Node, Num, Op, Sym, TooLarge, number, walk

_MOST_INSIDES, _MOST_CHANGES, _MOST_NUMBERS = 8, 6, 16
_CLOSER = 60
"""Halvings of an interval in which a piece ends."""
_BITS = 160
_WHOLE_TO = 40
_MOST_WORKED_OUT = 150
_EXPONENTS = (*range(2, 16), 18, 20, 25, 30, 40, 60, 100, 200)
_POSITIVE = (
    Fraction(1, 10**6), Fraction(1, 1000), Fraction(1, 10), *map(Fraction, (1, 2, 3, 5, 8, 14, 30, 60)),
    *(Fraction(factor * 10**exponent) for exponent in _EXPONENTS for factor in (1, 3)),
)  # fmt: skip
_GRID = (*(-value for value in reversed(_POSITIVE)), Fraction(0), *_POSITIVE)
_PRIMES = (101, 997, 7919, 104729, 15485863, 2038074743)
_SIGNED = ("abs", "call:abs", "call:sign")
_ROUNDED = ("floor", "ceil")
_TRIGONOMETRIC = ("sin", "cos", "tan", "cot", "sec", "csc")


def critical_values(whole: bool, *nodes: Node) -> tuple[list[Value], list[Value]]:
    """Values for a symbol: where pieces end, which must be looked at, and others that should be."""
    ends: dict[Value, None] = {}
    others: dict[Value, None] = {}
    for inside, levels in list(dict.fromkeys(_insides(*nodes)))[:_MOST_INSIDES]:
        for value, is_end in _ends(inside, levels=levels, whole=whole):
            (ends if is_end else others)[value] = None
    others |= dict.fromkeys(_written(*nodes))
    if whole:
        others |= dict.fromkeys(map(Fraction, (*range(1, _WHOLE_TO), *_PRIMES)))
        others |= dict.fromkeys(Fraction(2**power + step) for power in (7, 10, 20) for step in (-1, 0, 1))
        kept = [value for value in others if isinstance(value, Fraction) and value > 0 and value.denominator == 1]
        if any(isinstance(part, Op) and part.kind in ("sum", "prod") for node in nodes for part in walk(node)):
            # Worked out term by term.
            kept = [value for value in kept if value < _MOST_WORKED_OUT]
        return list(ends), list[Value](kept)
    others |= dict.fromkeys(map(Fraction, range(-3, 4)))
    if any(isinstance(part, Op) and part.parameter in _TRIGONOMETRIC for node in nodes for part in walk(node)):
        turns = (fold(Op("mul", (number(Fraction(turn, 2)), Sym("pi")))) for turn in (-2, -1, 1, 2, 3, 4))
        others |= dict.fromkeys(turn for turn in turns if isinstance(turn, Op))
    return list(ends), list(others)


def _insides(*nodes: Node) -> Iterator[tuple[Node, bool]]:
    """What decides about pieces, and whether its whole values do; else its sign."""
    for node in nodes:
        for part in walk(node):
            if not isinstance(part, Op):
                continue
            if part.head in _ROUNDED:
                yield part.args[0], True
            elif part.head in _SIGNED:
                yield part.args[0], False
            elif part.head in ("call:max", "call:min"):
                yield from ((_minus(first, second), False) for first, second in combinations(arguments(part), 2))
            elif part.head == "binom":
                yield _minus(*part.args), False
            elif part.head == "fact":
                yield part.args[0], False
            elif part.head == "pow" and isinstance(part.args[1], Num) and part.args[1].value.denominator != 1:
                base = part.args[0]
                yield base.args[0] if isinstance(base, Op) and base.head == "pow" else base, False


def _minus(first: Node, second: Node) -> Node:
    return fold(Op("add", (first, Op("neg", (second,)))))


def _ends(inside: Node, *, levels: bool, whole: bool) -> Iterator[tuple[Fraction, bool]]:
    """Values of a symbol next to which the inside passes a level, and some further off; other symbols are small."""
    names = sorted({part.name for part in walk(inside) if isinstance(part, Sym)} - {"pi", "e", "i", "infty"})
    for name in names[:3]:
        others = {other: Fraction(5 * place + 4, 3 if not whole else 1) for place, other in enumerate(names)}
        changes = 0
        for low, high in pairwise(value for value in _GRID if not whole or (value > 0 and value.denominator == 1)):
            before, after = (_level(inside, others | {name: value}, levels) for value in (low, high))
            if before is None or after is None or before == after:
                continue
            yield from _closed_in(inside, others, name, levels, whole, low, high)
            changes += 1
            if changes >= _MOST_CHANGES:
                break


def _closed_in(
    inside: Node, others: dict[str, Fraction], name: str, levels: bool, whole: bool, low: Fraction, high: Fraction
) -> Iterator[tuple[Fraction, bool]]:
    yield from ((low, False), (high, False))
    start = _level(inside, others | {name: low}, levels)
    for _ in range(_CLOSER if not whole else 2000):
        if high - low <= (1 if whole else Fraction(1, 10**9) * max(1, abs(high))):
            break
        middle = (low + high) / 2
        middle = Fraction(round(middle)) if whole else middle.limit_denominator(10**12)
        if middle in (low, high):
            break
        if _level(inside, others | {name: middle}, levels) == start:
            low = middle
        else:
            high = middle
    yield from ((low, True), (high, True))
    if not whole:
        place = high.limit_denominator(1000)
        yield from ((place, True), (place - Fraction(1, 7), False), (place + Fraction(1, 7), False))


def _level(inside: Node, values: dict[str, Fraction], levels: bool) -> int | None:
    """The whole number or the sign of the inside at a point; None where it has none."""
    use = Evaluator(_BITS, values, complex_values=False)
    try:
        found: Any = use(Op("floor" if levels else "call:sign", (inside,)))
        return int(found)
    except (Undefined, TooLarge, TypeError, ValueError):
        return None


def _written(*nodes: Node) -> Iterator[Fraction]:
    """Numbers that the expressions are written with, and those next to them."""
    seen: dict[Fraction, None] = {}
    for node in nodes:
        for part in walk(node):
            if isinstance(part, Num) and part.value:
                seen |= dict.fromkeys((abs(part.value), 1 / abs(part.value)))
    for value in list(seen)[:_MOST_NUMBERS]:
        yield from (value, value + 1, value - 1, 2 * value, -value)
