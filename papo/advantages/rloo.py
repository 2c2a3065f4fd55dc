"""RLOO: REINFORCE with a leave-one-out baseline (arXiv:2402.14740)."""

from typing import ClassVar, Literal

import numpy as np

from papo.advantages.normalize import batch_scale, check_normalizer, has_peers, leave_one_out
from papo.advantages.tokens import penalised_outcome
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, ScoredRollouts
from papo.values import value


@value
class Rloo:
    """A_i = r_i − mean of the other rows' r, the same for every token of the row.

    With a KL in the reward, the row's penalty is added to r first and takes part in the baseline (TRL's order).
    """

    kind: Literal["rloo"] = "rloo"
    normalize_advantages: bool = False
    """Divide the advantages by their standard deviation over the batch's rows that have a baseline (TRL's option)."""
    advantage_eps: float = 1e-4
    """Added to the batch's standard deviation (TRL: 1e-4)."""
    token_level: ClassVar[bool] = False
    takes_kl_in_reward: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_normalizer(std_ddof=1, advantage_eps=self.advantage_eps)

    @property
    def needs(self) -> Needs:
        return Needs()

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Per-row terms; a row that is alone, or whose group's rewards are all equal, gets exactly 0."""
        rewards = penalised_outcome(rollouts)
        outcome = leave_one_out(rewards, rollouts.group)
        if self.normalize_advantages:
            outcome = batch_scale(outcome, where=has_peers(rewards, rollouts.group), eps=self.advantage_eps)
        return AdvantageTerms(
            outcome=outcome, process=np.zeros_like(outcome), process_active=np.zeros(len(outcome), dtype=np.bool_)
        )
