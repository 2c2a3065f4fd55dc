"""Whether expressions with symbols are equal, or equations proportional, by their values at addressed points."""

import random
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from papo.verifiers.critical import critical_values
from papo.verifiers.functions import Undefined
from papo.verifiers.numeric import MOST_BITS, Evaluator, Values, agree
from papo.verifiers.syntax import Node, Num, Op, Sym, TooLarge, symbols_of, walk

ENOUGH = 5
"""Points at which both sides have a value that are asked for."""
_INTERVALS = (
    (0.1, 0.9), (1.1, 3.0), (-0.9, -0.1), (60.0, 900.0), (-9e5, -1e3), (0.1, 0.9), (1.1, 3.0), (-3.0, 3.0), (3.0, 9.0),
    (-3.0, 3.0), (-0.9, 0.9), (0.1, 5.0), (1.0, 2.0), (-9.0, 9.0), (0.1, 0.5), (1.5, 2.5),
)  # fmt: skip
_WIDE = (
    (-50.0, 50.0), (-1000.0, 1000.0), (20.0, 100.0), (-100.0, -20.0), (100.0, 1e4), (-1e4, -100.0), (-50.0, 50.0),
)  # fmt: skip
"""Further points for expressions made of pieces (|x − 20| is 20 − x for a while)."""
_WHOLE_POINTS = 60
"""Points for roundings: ⌊√n⌋ and ⌊√(n−1)⌋ differ at few numbers."""
_MOST_SYMBOLS = 40
_MOST_POINTS, _MOST_VARIED = 300, 3
"""Critical points of a pair, and symbols that run through them."""
_RATIO_BITS = 600
_REAL = frozenset("stuvwxyz")
"""Letters that no rounding makes whole numbers."""


class Undecided(Exception):
    """No engine could tell; not the same as different."""


def equal_at_points(gold: Node, answer: Node) -> bool:
    """Whether both agree wherever both are real. Raises Undecided where they hardly ever are, or cannot be worked out.

    A root that is not real on one side only (√a·√b and √(ab) for negative a, b) is passed over; a logarithm that is not
    real on one side only (ln x and ln |x|) makes them different.
    """
    names = sorted(symbols_of(gold) | symbols_of(answer))
    if len(names) > _MOST_SYMBOLS:
        raise Undecided(f"{len(names)} symbols")
    imaginary = has_imaginary(gold, answer)
    drawn = list(points(names, gold, answer))
    has_pieces = bool(names) and _has_pieces(gold, answer)
    enough = len(drawn) if has_pieces else ENOUGH + len(names) if names else 1
    for complex_values in (imaginary, True):
        seen = 0
        for values in drawn:
            same = _same_at(values, gold, answer, complex_values)
            if same is False:
                return False
            seen += same is True
            if seen >= enough:
                break
        if seen >= min(enough, ENOUGH - 2):
            return all(
                _same_at(values, gold, answer, complex_values, needed=needed) is not False
                for values, needed in critical_points(names, gold, answer)
            )
    raise Undecided("hardly any real value")


def _same_at(values: Values, gold: Node, answer: Node, complex_values: bool, *, needed: bool = False) -> bool | None:
    """Whether both have one value at a point; None where one has none. Raises Undecided where it is needed."""
    causes = [_cause(side, values, complex_values) for side in (gold, answer)]
    if causes == [None, None]:
        try:
            return agree(gold, answer, values, complex_values=complex_values)
        except (Undefined, TooLarge):
            if not values or needed:
                raise
            return None
    if needed and "large" in causes:
        raise Undecided("too large where a piece ends")
    if "log" in causes and None in causes and not any(isinstance(value, Op) for value in values.values()):
        return False
    return None


def proportional_at_points(gold: Node, answer: Node, *, positive: bool) -> bool:
    """Whether answer = c · gold with one constant c ≠ 0 (c > 0 if `positive`). Raises Undecided."""
    names = sorted(symbols_of(gold) | symbols_of(answer))
    if symbols_of(gold) != symbols_of(answer) or len(names) > _MOST_SYMBOLS:
        return False
    first: Any = None
    seen = 0
    plain = ((values, False) for values in points(names, gold, answer))
    for values, needed in chain(plain, critical_points(names, gold, answer)):
        try:
            ratio = _ratio(values, gold, answer)
        except (Undefined, TooLarge):
            if needed:
                raise
            continue
        if ratio is None:
            continue
        if not ratio[0] or (first is not None and abs(ratio[0] - first) > abs(first) * ratio[1]):
            return False
        first = ratio[0] if first is None else first
        seen += 1
        if seen > ENOUGH + len(names) and not _has_ends(gold, answer):
            break
    if seen < ENOUGH - 1:
        raise Undecided("hardly any real value")
    return not positive or (not getattr(first, "imag", 0) and first > 0)


def _ratio(values: Values, gold: Node, answer: Node) -> tuple[Any, Any] | None:
    """The answer's value divided by the reference's, and how exact; 0 where one alone vanishes, None where both do."""
    bits = _RATIO_BITS
    while True:
        use = Evaluator(bits, values, complex_values=has_imaginary(gold, answer))
        first, second = use(gold), use(answer)
        if use.bits_needed <= bits:
            break
        bits = use.bits_needed
        if bits > MOST_BITS:
            raise TooLarge(f"{bits} bits")
    if not first or not second:
        return (0, 0) if first or second else None
    return second / first, use.context.ldexp(1, use.largest + _RATIO_BITS // 2 - bits)


def critical_points(names: Sequence[str], *nodes: Node) -> Iterator[tuple[Values, bool]]:
    """Points where pieces end or may end, and whether a verdict needs them; none where there are no pieces."""
    if not (names and _has_ends(*nodes)):
        return
    first, *_, fifth = islice(points(names, *nodes), 5)
    whole = _whole_of(*nodes)
    found = [(name, *critical_values(name in whole, *nodes)) for name in names[:_MOST_VARIED]]
    bases = (first,) if len(names) == 1 else (first, fifth)
    seen = 0
    for place in (1, 2):
        for name, *values in found:
            for value in values[place - 1]:
                for base in bases:
                    seen += 1
                    if seen > _MOST_POINTS:
                        return
                    yield {**base, name: value}, place == 1


def points(names: Iterable[str], *nodes: Node) -> Iterator[Values]:
    """Points for these symbols, always the same ones; symbols that are whole numbers get those from 1 on."""
    ordered = list(names)
    whole = _whole_of(*nodes)
    intervals = _INTERVALS + (_WIDE if _has_pieces(*nodes) else ())
    if whole and _has_heads(("floor", "ceil"), *nodes):
        intervals = (_INTERVALS * _WHOLE_POINTS)[:_WHOLE_POINTS]
    for place, (low, high) in enumerate(intervals):
        found: dict[str, Fraction] = {}
        for order, name in enumerate(ordered):
            if name not in whole:
                found[name] = _drawn(name, place, low, high)
            else:
                # The first runs through all numbers, so that none of a rounding's steps is missed.
                low_steps = random.Random(f"{name} {place}").randint(1, 4)
                found[name] = Fraction(place + 1 if order == 0 else low_steps + place // 2)
        yield found


@lru_cache(maxsize=4096)
def _drawn(name: str, place: int, low: float, high: float) -> Fraction:
    draw = random.Random(f"{name} {place}")
    return Fraction(round(draw.uniform(low, high) * 9973), 9973) or Fraction(1, 7)


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


def _has_ends(*nodes: Node) -> bool:
    """Whether small numbers say nothing about large ones: pieces, whole-number symbols, divisors."""
    return _has_pieces(*nodes) or _has_heads(("call:gcd", "call:lcm"), *nodes) or bool(_whole_of(*nodes))


def _whole_of(*nodes: Node) -> frozenset[str]:
    return frozenset[str]().union(*map(whole_symbols, nodes))


def _has_heads(heads: tuple[str, ...], *nodes: Node) -> bool:
    return any(isinstance(part, Op) and part.head in heads for node in nodes for part in walk(node))


def whole_symbols(node: Node) -> frozenset[str]:
    """Symbols that only make sense as whole numbers: in bounds, factorials, roundings, exponents of −1."""
    found = frozenset[str]()
    for part in walk(node):
        if not isinstance(part, Op):
            continue
        if part.kind in ("fact", "binom") or part.head in ("call:gcd", "call:lcm"):
            found |= frozenset[str]().union(*map(symbols_of, part.args))
        elif part.kind in ("floor", "ceil") and _may_be_broken(part):
            found |= symbols_of(part) - _REAL
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
