"""The process-reward-only baseline: the PRM's score is the reward, on right and wrong rows alike."""

from typing import ClassVar, Literal

import numpy as np

from papo.advantages.normalize import check_normalizer, comparable, group_normalize
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, ScoredRollouts
from papo.values import value


@value
class Prm:
    """A_i = z over the group of r_proc; the outcome reward is not used."""

    kind: Literal["prm"] = "prm"
    std_ddof: int = 1
    """1 = sample standard deviation, 0 = population."""
    advantage_eps: float = 1e-6
    """Added to the standard deviation."""
    token_level: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_normalizer(std_ddof=self.std_ddof, advantage_eps=self.advantage_eps)

    @property
    def needs(self) -> Needs:
        return Needs(process_scores=True)

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Per-row terms. A row without a process score, or without a verdict, is left out and gets 0."""
        kept = rollouts.scorable
        process = group_normalize(
            rollouts.process, rollouts.group, where=kept, ddof=self.std_ddof, eps=self.advantage_eps
        )
        return AdvantageTerms(
            outcome=np.zeros_like(process),
            process=process,
            process_active=comparable(rollouts.process, rollouts.group, where=kept),
        )
