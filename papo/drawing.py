"""Which rows of the data an iteration draws: a function of where the run stands, not of a generator's state."""

from dataclasses import dataclass

import numpy as np

from papo.seeding import epoch_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    rows: tuple[int, ...]
    """Indices into the data set, in drawing order."""
    epoch: int
    """Where the next draw begins: `offset` rows of `epoch` are used up."""
    offset: int


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
