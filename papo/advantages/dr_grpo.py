"""Dr. GRPO's advantage: centred, never divided (arXiv:2503.20783)."""

from typing import ClassVar, Literal

import numpy as np

from papo.advantages.normalize import group_normalize
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, ScoredRollouts
from papo.values import value


@value
class DrGrpo:
    """A_i = r_i − mean_g r, the same for every token of the row.

    One of the paper's two changes; the other is the constant divisor, loss_agg_mode seq-mean-token-sum-norm.
    """

    kind: Literal["dr_grpo"] = "dr_grpo"
    token_level: ClassVar[bool] = False

    @property
    def needs(self) -> Needs:
        return Needs()

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Per-row terms; rows without a reward and groups of equal rewards, or of one, get exactly 0."""
        outcome = group_normalize(rollouts.outcome, rollouts.group, scale="none")
        return AdvantageTerms(
            outcome=outcome, process=np.zeros_like(outcome), process_active=np.zeros(len(outcome), dtype=np.bool_)
        )
