"""Which rows of the data an iteration draws: a function of where the run stands, not of a generator's state.

A mixture's draws come in rounds. A round is the shortest run of draws in which every source can have exactly its share
(weights 0.3 and 0.7: ten draws), and the order of sources within it is fixed by the weights alone, such that after any
number n of draws each source has had n·share of them, to less than one draw. Each source has epochs of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import gcd, lcm

import numpy as np

from papo.seeding import epoch_order

LONGEST_ROUND = 10_000
"""Draws in a round, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    rows: tuple[int, ...]
    """Indices into the data set, in drawing order."""
    epoch: int
    """Where the next draw begins: `offset` rows of `epoch` are used up. Of a mixture: draws of a round."""
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One source's rows in the data set of a mixture: `size` of them from `first` on."""

    name: str
    """Addresses the source's order, which does not depend on what it is mixed with."""
    weight: int
    """Draws a round."""
    first: int
    size: int


def draw_rows(run_seed: int, *, epoch: int, offset: int, count: int, size: int, shuffle: bool) -> Draw:
    """The next `count` rows of a data set of `size`. Each epoch uses every row exactly once; an epoch's rest is
    followed by the next one's start, so no row is skipped or drawn twice at the seam."""
    rows: list[int] = []
    while len(rows) < count:
        order = epoch_order(run_seed, epoch=epoch, size=size) if shuffle else np.arange(size)
        taken = order[offset : offset + count - len(rows)]
        rows.extend(int(row) for row in taken)
        offset += len(taken)
        if offset == size:
            epoch, offset = epoch + 1, 0
    return Draw(rows=tuple(rows), epoch=epoch, offset=offset)


def draw_mixed(run_seed: int, *, epoch: int, offset: int, count: int, parts: Sequence[Part], shuffle: bool) -> Draw:
    """The next `count` rows of a mixture, of which `epoch` rounds and `offset` draws of the next are used up.

    The k-th draw of a source is row k mod size of its epoch k div size, shuffled by (seed, name, epoch): every row of a
    source is drawn once before any is drawn again, however its share is spread.
    """
    sources = mixing_round(tuple(part.weight for part in parts))
    drawn = [epoch * part.weight + sources[:offset].count(index) for index, part in enumerate(parts)]
    orders: dict[tuple[int, int], Sequence[int]] = {}
    rows: list[int] = []
    for position in range(offset, offset + count):
        index = sources[position % len(sources)]
        part = parts[index]
        at, place = divmod(drawn[index], part.size)
        if (index, at) not in orders:
            orders[index, at] = _order(run_seed, part, epoch=at, shuffle=shuffle)
        rows.append(part.first + int(orders[index, at][place]))
        drawn[index] += 1
    epoch, offset = divmod(epoch * len(sources) + offset + count, len(sources))
    return Draw(rows=tuple(rows), epoch=epoch, offset=offset)


@cache
def mixing_round(weights: tuple[int, ...]) -> tuple[int, ...]:
    """The source of each draw of a round, as indices into `weights`: Σ weights draws.

    The schedule of Tijdeman, "The chairman assignment problem" (Discrete Mathematics 32, 1980): of the k sources that
    are behind by 1/(2k−2) or more, the one whose lag reaches 1 − 1/(2k−2) soonest. After n draws every source's count
    is within 1 − 1/(2k−2) of n·share, the best that is possible for all weights.
    """
    total, edge = sum(weights), max(1, 2 * len(weights) - 2)
    counts = [0] * len(weights)
    chosen: list[int] = []
    for draws in range(1, total + 1):
        # In units of 1/total, so that all is exact.
        lags = [draws * weight - count * total for weight, count in zip(weights, counts, strict=True)]
        behind = [index for index, lag in enumerate(lags) if lag * edge >= total] or [0]
        index = min(behind, key=lambda index: Fraction((edge - 1) * total - edge * lags[index], weights[index]))
        chosen.append(index)
        counts[index] += 1
    return tuple(chosen)


def whole_weights(weights: Sequence[float]) -> tuple[int, ...]:
    """The smallest whole numbers in the ratio of `weights`, each taken as it is spelled (0.1 is one tenth)."""
    exact = [Fraction(repr(weight)) for weight in weights]
    common = lcm(*(weight.denominator for weight in exact))
    whole = [int(weight * common) for weight in exact]
    shared = gcd(*whole)
    return tuple(weight // shared for weight in whole)


def _order(run_seed: int, part: Part, *, epoch: int, shuffle: bool) -> Sequence[int]:
    if not shuffle:
        return range(part.size)
    return epoch_order(run_seed, epoch=epoch, size=part.size, stage=f"data/{part.name}").tolist()
