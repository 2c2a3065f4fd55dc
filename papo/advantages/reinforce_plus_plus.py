"""REINFORCE++ and its baseline form: returns whitened over the whole batch (arXiv:2501.03262)."""

from typing import ClassVar, Literal

import numpy as np

from papo.advantages.normalize import group_normalize, has_peers
from papo.advantages.tokens import (
    check_discount,
    penalised_outcome,
    terminal_rewards,
    token_terms,
    training_tokens,
    whitened,
)
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, ScoredRollouts
from papo.values import value


@value
class ReinforcePlusPlus:
    """A_t = whitened Σ_{s ≥ t} γ^(s−t) r_s; r is the outcome at the last token plus the KL reward of each.

    Whitening is over all training tokens of the batch, so no group is needed.
    """

    kind: Literal["reinforce_plus_plus"] = "reinforce_plus_plus"
    gamma: float = 1.0
    """Discount a training token."""
    whiten_eps: float = 1e-8
    """Added to the variance."""
    whiten_count_eps: float = 0.0
    """Added to the number of tokens in means (verl: 1e-8)."""
    token_level: ClassVar[bool] = True
    needs_groups: ClassVar[bool] = False
    takes_kl_in_reward: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_discount(gamma=self.gamma)

    @property
    def needs(self) -> Needs:
        return Needs()

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Terms whose total is the row's mean; rows without a reward take no part and get 0."""
        tokens = training_tokens(rollouts)
        returns = tokens.suffix_sums(terminal_rewards(rollouts, tokens), discount=self.gamma)
        advantages = whitened(returns, eps=self.whiten_eps, count_eps=self.whiten_count_eps)
        return token_terms(tokens, outcome=advantages, process=np.zeros_like(advantages))


@value
class ReinforcePlusPlusBaseline:
    """A_i = whitened (r_i − mean_g r): the group's mean is subtracted, the batch's deviation divides.

    The statistics are those of tokens: a row counts as often as it has training tokens.
    """

    kind: Literal["reinforce_plus_plus_baseline"] = "reinforce_plus_plus_baseline"
    whiten_eps: float = 1e-8
    """Added to the variance."""
    whiten_count_eps: float = 0.0
    """Added to the number of tokens in means (verl: 1e-8)."""
    token_level: ClassVar[bool] = False
    takes_kl_in_reward: ClassVar[bool] = True

    @property
    def needs(self) -> Needs:
        return Needs()

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Per-row terms. A row that is alone in its group has no baseline: it takes no part and gets 0."""
        rewards = penalised_outcome(rollouts)
        tokens = training_tokens(rollouts, where=has_peers(rewards, rollouts.group))
        centred = group_normalize(rewards, rollouts.group, scale="none")
        flat = whitened(centred[tokens.row], eps=self.whiten_eps, count_eps=self.whiten_count_eps)
        outcome = tokens.means(flat) + 0.0
        return AdvantageTerms(
            outcome=outcome, process=np.zeros_like(outcome), process_active=np.zeros(len(outcome), dtype=np.bool_)
        )
