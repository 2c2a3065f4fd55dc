"""Which groups an update is worth: dynamic sampling (DAPO, arXiv:2503.14476 eq. 11) and PRIME's accuracy filter.

Pure rules on scored rollouts; drawing more in place of what is dropped is the caller's work.
"""

from typing import Literal

import numpy as np

from papo.rollouts import AdvantageTerms, Mask, ScoredRollouts
from papo.values import value


@value
class FilterGroups:
    """Keep the groups in which the metric differs between rows; draw new ones for the others, in numbered rounds."""

    metric: Literal["acc", "score", "advantage"] = "advantage"
    """acc: right and wrong rows (DAPO); score: the shaped outcome; advantage: any signal at all. With PAPO use
    advantage: acc drops the all-right groups, where its process part works."""
    max_num_gen_batches: int = 10
    """Rounds of drawing at most for one iteration."""
    when_exhausted: Literal["train", "skip", "stop"] = "train"
    """After the last round without enough groups: train on those there are, skip the update, or stop the run."""

    def __post_init__(self) -> None:
        if self.max_num_gen_batches < 1:
            raise ValueError(f"max_num_gen_batches is {self.max_num_gen_batches}: use 1 or more rounds.")

    def keeps(self, rollouts: ScoredRollouts, terms: AdvantageTerms) -> Mask:
        """Rows of groups to keep, those without a reward included. Differences are tested on values, not on a std."""
        kept = np.zeros(len(rollouts.group), dtype=np.bool_)
        for group in np.unique(rollouts.group):
            members = rollouts.group == group
            kept[members] = self._differs(members & rollouts.scorable, rollouts, terms)
        return kept

    def _differs(self, members: Mask, rollouts: ScoredRollouts, terms: AdvantageTerms) -> bool:
        if not members.any():
            return False
        if self.metric == "advantage":
            return bool((~terms.silent[members]).any())
        values = rollouts.correct[members] if self.metric == "acc" else rollouts.outcome[members]
        return bool(values.max() != values.min())


@value
class FilterAccuracy:
    """Keep the prompts whose share of right answers is neither too low nor too high (PRIME, arXiv:2502.01456)."""

    accuracy_lower_bound: float = 0.2
    """Lowest share that is kept."""
    accuracy_upper_bound: float = 0.8
    """Highest share that is kept."""
    oversample_factor: float = 4.0
    """Prompts drawn for each one that is to be kept."""

    def __post_init__(self) -> None:
        low, high = self.accuracy_lower_bound, self.accuracy_upper_bound
        if not 0 <= low <= high <= 1:
            raise ValueError(f"the accuracy filter keeps {low} to {high}: use shares, the lower one first.")
        if not self.oversample_factor >= 1:
            raise ValueError(f"oversample_factor is {self.oversample_factor}: draw at least what is kept, 1 or more.")

    def keeps(self, rollouts: ScoredRollouts) -> Mask:
        """Rows of groups to keep; both bounds belong to what is kept."""
        kept = np.zeros(len(rollouts.group), dtype=np.bool_)
        for group in np.unique(rollouts.group):
            members = rollouts.group == group
            known = members & rollouts.scorable
            right, count = int((known & rollouts.correct).sum()), int(known.sum())
            kept[members] = count > 0 and (
                self.accuracy_lower_bound * count <= right <= self.accuracy_upper_bound * count
            )
        return kept
