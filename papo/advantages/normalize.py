"""The one normaliser that the group estimators share."""

from math import fsum, sqrt
from typing import Literal

import numpy as np
from jaxtyping import Float64

from papo.rollouts import Groups, Mask, Values

Scale = Literal["group", "batch", "none"]


def group_normalize(
    values: Values,
    group: Groups,
    *,
    where: Mask | None = None,
    ddof: int = 1,
    eps: float = 1e-6,
    scale: Scale = "group",
) -> Values:
    """Centre each value by its own group's mean and divide by a standard deviation.

        z_i = (x_i − mean_g) / (std + eps)      for comparable rows, see `comparable`
        z_i = 0                                 otherwise, and where the kept rows of the group are all equal

    The mean is the group's; `scale` says whose standard deviation divides: the group's (GRPO, arXiv:2402.03300), the
    whole batch's (arXiv:2508.08221), or none (Dr. GRPO, arXiv:2503.20783). With `where` the statistics are those of
    the kept rows only: PAPO's correct-subset rule (arXiv:2603.26535 eq. 4). NaN counts as not kept. The batch's
    deviation is that of the rewards, so a row that is alone in its group counts in it (TRL).
    Sums are exactly rounded, so the order of the rows changes no bit of the result.
    """
    kept = _kept(values, where)
    normalized = np.zeros_like(values)
    batch_scale = _std(values[kept], ddof=ddof) if scale == "batch" else 0.0
    for members in _comparable_groups(values, group, kept):
        centred = values[members] - fsum(values[members]) / int(members.sum())
        if scale != "none":
            centred /= (_std(values[members], ddof=ddof) if scale == "group" else batch_scale) + eps
        normalized[members] = centred
    return normalized


def comparable(values: Values, group: Groups, *, where: Mask | None = None, at_least: int = 2) -> Mask:
    """Rows that are kept and stand in a group with `at_least` kept rows whose values are not all equal.

    Equality is tested on the values (max == min), never on the size of a standard deviation: eight float32 rewards
    of 0.7 have a tiny one, and dividing by it would make up a signal.
    """
    mask = np.zeros(len(values), dtype=np.bool_)
    for members in _comparable_groups(values, group, _kept(values, where), at_least=at_least):
        mask |= members
    return mask


def has_peers(values: Values, group: Groups, *, where: Mask | None = None) -> Mask:
    """Rows that are kept and have another kept row in their group: those that a group's baseline exists for."""
    kept = _kept(values, where)
    _, index = np.unique(group, return_inverse=True)
    return kept & (np.bincount(index, weights=kept)[index] > 1)


def batch_scale(advantages: Values, *, where: Mask, ddof: int = 1, eps: float = 1e-6) -> Values:
    """Advantages divided by their standard deviation over the rows `where` they have a baseline (+ eps); 0 elsewhere.

    They are not centred: those of each group sum to 0, so their mean is 0 but for rounding. Subtracting the rounding
    would give a group of equal rewards an advantage.
    """
    scaled = np.zeros_like(advantages)
    deviation = _std(advantages[where], ddof=ddof)
    if deviation > 0:
        scaled[where] = advantages[where] / (deviation + eps)
    return scaled


def _kept(values: Values, where: Mask | None) -> Mask:
    known = ~np.isnan(values)
    return known if where is None else known & where


def _comparable_groups(values: Values, group: Groups, kept: Mask, *, at_least: int = 2) -> list[Mask]:
    groups = [kept & (group == group_id) for group_id in np.unique(group)]
    return [m for m in groups if m.sum() >= at_least and values[m].max() != values[m].min()]


def _std(values: Float64[np.ndarray, " kept"], *, ddof: int) -> float:
    """Standard deviation, scaled by the largest deviation so that squares neither overflow nor vanish."""
    deviations = values - fsum(values) / max(1, len(values))
    largest = float(np.abs(deviations).max(initial=0.0))
    if largest == 0.0 or len(values) <= ddof:
        return 0.0
    return largest * sqrt(fsum((deviations / largest) ** 2) / (len(values) - ddof))


def check_normalizer(*, std_ddof: int, advantage_eps: float) -> None:
    """Raise ValueError on settings that no group estimator can use."""
    if std_ddof not in (0, 1):
        raise ValueError(f"std_ddof is {std_ddof}: use 1 (sample standard deviation, the field's) or 0 (population).")
    if not 0 <= advantage_eps < np.inf:
        raise ValueError(f"advantage_eps is {advantage_eps}: use a small number that is not negative, such as 1e-6.")


def leave_one_out(values: Values, group: Groups, *, where: Mask | None = None) -> Values:
    """x_i − mean of the group's other kept rows = n/(n−1) · (x_i − mean); 0 where a row is alone or all are equal.

    Kool et al., "Buy 4 REINFORCE samples, get a baseline for free" (2019); RLOO, arXiv:2402.14740.
    """
    differences = np.zeros_like(values)
    for members in _comparable_groups(values, group, _kept(values, where)):
        count = int(members.sum())
        differences[members] = (count * values[members] - fsum(values[members])) / (count - 1)
    return differences


def rank_normalize(
    values: Values, group: Groups, *, where: Mask | None = None, ddof: int = 1, scale: Scale = "group"
) -> Values:
    """`group_normalize` of each value's rank in its group, ties at their average rank: only the order matters.

    Mean 0 and standard deviation 1 (no eps: ranks have no tiny spreads); 0 where a group's kept rows are all equal.
    """
    ranks = np.full_like(values, np.nan)
    for members in _comparable_groups(values, group, _kept(values, where)):
        own = values[members]
        below = (own[None, :] < own[:, None]).sum(axis=1)
        level = (own[None, :] == own[:, None]).sum(axis=1)
        ranks[members] = below + (level + 1) / 2
    return group_normalize(ranks, group, ddof=ddof, eps=0.0, scale=scale)
