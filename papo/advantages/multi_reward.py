"""Several rewards a rollout, summed before or after they are normalised (GDPO, arXiv:2601.05242; TRL)."""

from math import fsum
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64

from papo.advantages.normalize import Scale, batch_scale, check_normalizer, group_normalize, has_peers
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, Mask, ScoredRollouts, Values
from papo.values import value


@value
class MultiReward:
    """sum_then_normalize: A = z of Σ_k w_k·r_k.   normalize_then_sum: A = Σ_k w_k·(z of r_k) / its std in the batch."""

    kind: Literal["multi_reward"] = "multi_reward"
    reward_weights: tuple[float, ...] = (1.0,)
    """w: one weight a reward, in the order of the components."""
    multi_objective_aggregation: Literal["sum_then_normalize", "normalize_then_sum"] = "sum_then_normalize"
    """Whether a reward of large spread outweighs the others (sum first), or each counts by its weight (GDPO)."""
    scale_rewards: Scale = "group"
    """What divides in sum_then_normalize; normalize_then_sum divides by the group's deviation, then the batch's."""
    std_ddof: int = 1
    """1 = sample standard deviation, 0 = population."""
    advantage_eps: float = 1e-6
    """Added to the standard deviation (TRL: 1e-4)."""
    token_level: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_normalizer(std_ddof=self.std_ddof, advantage_eps=self.advantage_eps)
        if not self.reward_weights or not np.isfinite(self.reward_weights).all():
            raise ValueError(f"reward_weights is {self.reward_weights}: give one finite weight a reward.")

    @property
    def needs(self) -> Needs:
        return Needs(components=True)

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Per-row terms. A reward that a row lacks counts as nothing for it; a row that lacks all gets 0.

        Raises ValueError without components, or if there are not as many as weights.
        """
        rewards = rollouts.components
        if rewards is None or rewards.shape[1] != len(self.reward_weights):
            found = "none" if rewards is None else f"{rewards.shape[1]} rewards"
            raise ValueError(
                f"multi_reward has {len(self.reward_weights)} reward_weights, but the rollouts' components have"
                f" {found}: give one weight a reward."
            )
        known = rollouts.scorable & ~np.isnan(rewards).all(axis=1)
        if self.multi_objective_aggregation == "normalize_then_sum":
            outcome = self._normalize_then_sum(rewards, known, rollouts)
        else:
            summed = self._weighted(rewards, known)
            outcome = group_normalize(
                summed, rollouts.group, ddof=self.std_ddof, eps=self.advantage_eps, scale=self.scale_rewards
            )
        return AdvantageTerms(
            outcome=outcome, process=np.zeros_like(outcome), process_active=np.zeros(len(outcome), dtype=np.bool_)
        )

    def _normalize_then_sum(
        self, rewards: Float64[np.ndarray, "rollouts rewards"], known: Mask, rollouts: ScoredRollouts
    ) -> Values:
        parts = [
            group_normalize(column, rollouts.group, where=known, ddof=self.std_ddof, eps=self.advantage_eps)
            for column in rewards.T
        ]
        summed = self._weighted(np.stack(parts, axis=1), known)
        compared = np.any([has_peers(column, rollouts.group, where=known) for column in rewards.T], axis=0)
        return batch_scale(summed, where=compared, ddof=self.std_ddof, eps=self.advantage_eps)

    def _weighted(self, rewards: Float64[np.ndarray, "rollouts rewards"], known: Mask) -> Values:
        """Σ_k w_k·x_k over the rewards that a row has, exactly rounded whatever their order; NaN where it has none."""
        weighted = np.nan_to_num(rewards) * np.array(self.reward_weights)
        return np.where(known, np.array([fsum(row) for row in weighted]), np.nan)
