"""The summed-reward baseline: outcome and process are added first and normalised together.

What PAPO is compared with: a process score that can outgrow the outcome reward takes over (reward hacking).
"""

from typing import ClassVar, Literal

import numpy as np

from papo.advantages.normalize import check_normalizer, group_normalize
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, ScoredRollouts
from papo.values import value


@value
class Sum:
    """A_i = z over the group of (r_out + r_proc)."""

    kind: Literal["sum"] = "sum"
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
        """Per-row terms, all in `outcome`: the rewards are mixed before they are normalised, so no split exists.

        A row that lacks either reward is left out of the statistics and gets 0.
        """
        mixed = group_normalize(
            rollouts.outcome + rollouts.process, rollouts.group, ddof=self.std_ddof, eps=self.advantage_eps
        )
        return AdvantageTerms(
            outcome=mixed, process=np.zeros_like(mixed), process_active=np.zeros(len(mixed), dtype=np.bool_)
        )
