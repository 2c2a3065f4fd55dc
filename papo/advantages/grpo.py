"""GRPO with outcome supervision (DeepSeekMath, arXiv:2402.03300 §4.1.2)."""

from typing import ClassVar, Literal

import numpy as np

from papo.advantages.normalize import Scale, check_normalizer, group_normalize
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, ScoredRollouts
from papo.values import value


@value
class Grpo:
    """A_i = (r_i − mean_g r) / (std_g r + eps), the same for every token of the row."""

    kind: Literal["grpo"] = "grpo"
    scale_rewards: Scale = "group"
    """What divides the centred reward: the group's std, the whole batch's, or nothing."""
    std_ddof: int = 1
    """1 = sample standard deviation (TRL, verl, OpenRLHF, PAPO's code), 0 = population."""
    advantage_eps: float = 1e-6
    """Added to the standard deviation."""
    token_level: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_normalizer(std_ddof=self.std_ddof, advantage_eps=self.advantage_eps)

    @property
    def needs(self) -> Needs:
        return Needs()

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Per-row terms; rows without a reward and groups of equal rewards, or of one, get exactly 0."""
        outcome = group_normalize(
            rollouts.outcome, rollouts.group, ddof=self.std_ddof, eps=self.advantage_eps, scale=self.scale_rewards
        )
        return AdvantageTerms(
            outcome=outcome, process=np.zeros_like(outcome), process_active=np.zeros(len(outcome), dtype=np.bool_)
        )
