"""Why a rollout's advantage is zero, for the audit of a run."""

from typing import Literal

import numpy as np

from papo.rollouts import AdvantageTerms, ScoredRollouts

ZeroReason = Literal["unscorable", "excluded", "group_of_one", "equal_rewards", "at_group_mean"]


def zero_reason(rollouts: ScoredRollouts, terms: AdvantageTerms) -> list[ZeroReason | None]:
    """One entry a row: None where the advantage is not zero at every token, else the first of these that holds.

    unscorable      the row has no outcome reward
    excluded        the estimator takes the row out of the loss (gae: truncated rows with `truncation: mask`)
    group_of_one    no other row of its group has one
    equal_rewards   all rewards of its group are equal and no process score (of weight above 0) told the row from others
    at_group_mean   the row was compared, and stands at the mean (or its terms cancel)
    """
    reasons: list[ZeroReason | None] = [None] * len(rollouts.group)
    for row in np.flatnonzero(terms.silent):
        reasons[row] = _reason(rollouts, terms, int(row))
    return reasons


def _reason(rollouts: ScoredRollouts, terms: AdvantageTerms, row: int) -> ZeroReason:
    members = rollouts.scorable & (rollouts.group == rollouts.group[row])
    peers = rollouts.outcome[members]
    if not rollouts.scorable[row]:
        return "unscorable"
    if terms.excluded is not None and terms.excluded[row]:
        return "excluded"
    if len(peers) == 1:
        return "group_of_one"
    told_apart = terms.process_active[row] and terms.process[members].any()
    if peers.max() == peers.min() and not told_apart:
        return "equal_rewards"
    return "at_group_mean"
