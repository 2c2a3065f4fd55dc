"""Generalised advantage estimation for PPO with a critic (arXiv:1506.02438, arXiv:1707.06347)."""

from typing import ClassVar, Literal

import numpy as np

from papo.advantages.tokens import (
    Flat,
    TrainingTokens,
    check_discount,
    terminal_rewards,
    token_terms,
    training_tokens,
    whitened,
)
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, Mask, ScoredRollouts
from papo.values import value


@value
class Gae:
    """δ_t = r_t + γ·V_{t+1} − V_t,   A_t = δ_t + γ·λ·A_{t+1},   returns = A + V before whitening.

    r is the outcome at the last training token plus the KL reward of each. Masked tokens are skipped. V after the
    last token is 0, as the episode has ended, except as `truncation` says.
    """

    kind: Literal["gae"] = "gae"
    gamma: float = 1.0
    """Discount a training token."""
    lam: float = 0.95
    """λ: 1 is return minus value, 0 is the one-step difference (TRL, Tülu: 0.95, verl: 1)."""
    whiten_advantages: bool = True
    """Give the advantages mean 0 and variance 1 over the batch's training tokens; the returns stay as they are."""
    whiten_eps: float = 1e-8
    """Added to the variance."""
    whiten_count_eps: float = 0.0
    """Added to the number of tokens in means (verl: 1e-8)."""
    truncation: Literal["bootstrap", "terminal", "mask"] = "bootstrap"
    """Rows cut off at the token limit: they may still earn what the critic expects (bootstrap), count as ended like
    any other (terminal, what most trainers do unsaid), or leave loss, divisor and statistics (mask)."""
    token_level: ClassVar[bool] = True
    needs_groups: ClassVar[bool] = False
    takes_kl_in_reward: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_discount(gamma=self.gamma, lam=self.lam)

    @property
    def needs(self) -> Needs:
        return Needs(critic=True)

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Terms whose total is the row's mean, and the critic's returns.

        Raises ValueError without token_values, or where a truncated row is to be bootstrapped without final_values.
        """
        if rollouts.token_values is None:
            raise ValueError("gae needs token_values, the critic's value before each token: run the values stage.")
        cut = np.zeros(len(rollouts.group), dtype=np.bool_) if rollouts.truncated is None else rollouts.truncated
        excluded = cut if self.truncation == "mask" else np.zeros_like(cut)
        tokens = training_tokens(rollouts, where=~excluded)
        values = tokens.pick(rollouts.token_values)
        following = self._following(rollouts, tokens, values, cut)
        deltas = terminal_rewards(rollouts, tokens) + self.gamma * following - values
        advantages = tokens.suffix_sums(deltas, discount=self.gamma * self.lam)
        returns = tokens.spread(advantages + values)
        if self.whiten_advantages:
            advantages = whitened(advantages, eps=self.whiten_eps, count_eps=self.whiten_count_eps)
        return token_terms(
            tokens, outcome=advantages, process=np.zeros_like(advantages), returns=returns, excluded=excluded
        )

    def _following(self, rollouts: ScoredRollouts, tokens: TrainingTokens, values: Flat, cut: Mask) -> Flat:
        """The value after each training token: of the next one, and after the last one 0 or what the rule says."""
        following = np.append(values[1:], 0.0)[: len(values)]
        ends = np.zeros(len(cut))
        bootstrapped = cut & (tokens.counts > 0) if self.truncation == "bootstrap" else np.zeros_like(cut)
        if bootstrapped.any():
            if rollouts.final_values is None:
                raise ValueError(
                    f"{int(bootstrapped.sum())} rows were cut off and truncation is bootstrap, but there are no"
                    " final_values, the critic's value after the last token: compute them, or use truncation:"
                    " terminal or mask."
                )
            ends[bootstrapped] = rollouts.final_values[bootstrapped]
        following[tokens.last] = ends[tokens.counts > 0]
        return following
