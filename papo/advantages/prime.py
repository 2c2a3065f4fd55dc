"""PRIME: implicit process rewards with a leave-one-out baseline (arXiv:2502.01456 §3)."""

from typing import ClassVar, Literal

import numpy as np

from papo.advantages.normalize import check_normalizer, group_normalize, has_peers, leave_one_out
from papo.advantages.papo import check_weight
from papo.advantages.tokens import Flat, TrainingTokens, check_discount, token_terms, training_tokens, whitening
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, Mask, ScoredRollouts, Values
from papo.values import value


@value
class Prime:
    """A_t = Σ_{s ≥ t} γ_p^(s−t)·[r_s − baseline] + γ_o^(end−t)·(r_o − baseline), r_s the implicit PRM's token reward.

    The process baseline is made of the rows' *mean* token rewards (eq. 5). Token rewards: `implicit_token_rewards`.
    """

    kind: Literal["prime"] = "prime"
    prime_impl: Literal["paper", "verl"] = "paper"
    """paper: a token's reward minus the mean over the other rows. verl: K/(K−1)·(reward − mean over all rows), and
    the sum whitened over the batch's training tokens."""
    prime_form: Literal["rloo", "grpo", "reinforce"] = "rloo"
    """Baselines: leave-one-out (eq. 5), the group's mean and standard deviation (eq. 7), or none."""
    gamma_process: float = 1.0
    """Discount a training token of the process part."""
    gamma_outcome: float = 1.0
    """Discount a training token of the outcome part, which is on the last token."""
    reward_dpo_coef: float = 1.0
    """Weight of the process part (the paper: 1, verl's recipe: 5)."""
    reward_gt_coef: float = 1.0
    """Weight of the outcome part (the paper: 1, verl's recipe: 5)."""
    std_ddof: int = 1
    """Of the grpo form: 1 = sample standard deviation, 0 = population."""
    advantage_eps: float = 1e-6
    """Added to the standard deviations of the grpo form."""
    whiten_eps: float = 1e-8
    """Added to the variance (verl)."""
    whiten_count_eps: float = 0.0
    """Added to the number of tokens in the whitening's means (verl: 1e-8)."""
    token_level: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_normalizer(std_ddof=self.std_ddof, advantage_eps=self.advantage_eps)
        check_discount(gamma_process=self.gamma_process, gamma_outcome=self.gamma_outcome)
        check_weight(reward_dpo_coef=self.reward_dpo_coef, reward_gt_coef=self.reward_gt_coef)

    @property
    def needs(self) -> Needs:
        return Needs(implicit_prm=True)

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Terms with the mean of each part over the row's tokens. A row without a baseline gets 0: see `trained`.

        Raises ValueError without token_rewards.
        """
        if rollouts.token_rewards is None:
            raise ValueError("prime needs token_rewards, those of the implicit PRM: run the implicit stage.")
        tokens = self.trained(rollouts)
        process = self.reward_dpo_coef * self._process_returns(rollouts, tokens)
        outcome = self.reward_gt_coef * self._outcome_returns(rollouts, tokens)
        if self.prime_impl == "verl":
            mean, scale = whitening(outcome + process, eps=self.whiten_eps, count_eps=self.whiten_count_eps)
            outcome, process = (outcome - mean) * scale, process * scale
        return token_terms(tokens, outcome=outcome, process=process, process_active=tokens.counts > 0)

    def trained(self, rollouts: ScoredRollouts) -> TrainingTokens:
        """The tokens that take part, also in what is of the whole batch: `whitening`, and prime_norm's largest return.

        A row that is alone in its group has no baseline and no part, except in the reinforce form, which has none.
        """
        alone_too = self.prime_form == "reinforce"
        return training_tokens(rollouts, where=None if alone_too else has_peers(rollouts.outcome, rollouts.group))

    def _process_returns(self, rollouts: ScoredRollouts, tokens: TrainingTokens) -> Flat:
        assert rollouts.token_rewards is not None
        rewards = tokens.pick(rollouts.token_rewards)
        if self.prime_form != "reinforce":
            rewards = self._less_baseline(rewards, rollouts, tokens)
        return tokens.suffix_sums(rewards, discount=self.gamma_process)

    def _less_baseline(self, rewards: Flat, rollouts: ScoredRollouts, tokens: TrainingTokens) -> Flat:
        """Each token's reward against the row means of its group; 0 where the row has no peer with tokens.

        Where all means are equal, so is every baseline, and no rounding is left between a token and its equal. The grpo
        form then gives 0: rows of equal means have no deviation to divide by.
        """
        means = tokens.means(rewards)
        relative = np.zeros_like(rewards)
        for group in np.unique(rollouts.group):
            members = (rollouts.group == group) & (tokens.counts > 0)
            count, own = int(members.sum()), members[tokens.row]
            if count < 2:
                continue
            total = np.sort(means[members]).sum()
            if means[members].min() == means[members].max():
                relative[own] = self._among_equals(rewards[own] - means[members][0], count)
            elif self.prime_form == "grpo":
                deviation = np.sort(means[members]).std(ddof=self.std_ddof)
                relative[own] = (rewards[own] - total / count) / (deviation + self.advantage_eps)
            elif self.prime_impl == "verl":
                relative[own] = (rewards[own] * count - total) / (count - 1)
            else:
                relative[own] = rewards[own] - (total - means[tokens.row[own]]) / (count - 1)
        return relative

    def _among_equals(self, differences: Flat, count: int) -> Flat:
        if self.prime_form == "grpo":
            return np.zeros_like(differences)
        return differences * count / (count - 1) if self.prime_impl == "verl" else differences

    def _outcome_returns(self, rollouts: ScoredRollouts, tokens: TrainingTokens) -> Flat:
        rewards = np.zeros(len(tokens.row))
        rewards[tokens.last] = self._outcome(rollouts, tokens.counts > 0)[tokens.counts > 0]
        return tokens.suffix_sums(rewards, discount=self.gamma_outcome)

    def _outcome(self, rollouts: ScoredRollouts, present: Mask) -> Values:
        if self.prime_form == "rloo":
            return leave_one_out(rollouts.outcome, rollouts.group)
        if self.prime_form == "grpo":
            return group_normalize(rollouts.outcome, rollouts.group, ddof=self.std_ddof, eps=self.advantage_eps)
        return np.where(present, rollouts.outcome, 0.0)
