"""The multiplied-reward baseline: outcome times process score, then GRPO (PAPO's ablation, arXiv:2603.26535)."""

from typing import ClassVar, Literal

import numpy as np

from papo.advantages.normalize import check_normalizer, group_normalize
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, ScoredRollouts
from papo.values import value


@value
class Mult:
    """A_i = z over the group of r_out · r_proc."""

    kind: Literal["mult"] = "mult"
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
        """Per-row terms, all in `outcome`: the product has no split.

        A row of outcome 0 has the product 0, scored or not; another row without a score is left out and gets 0.
        """
        product = np.where(rollouts.outcome == 0.0, 0.0, rollouts.outcome * rollouts.process)
        mixed = group_normalize(product, rollouts.group, ddof=self.std_ddof, eps=self.advantage_eps)
        return AdvantageTerms(
            outcome=mixed, process=np.zeros_like(mixed), process_active=np.zeros(len(mixed), dtype=np.bool_)
        )
