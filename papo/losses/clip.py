"""PPO's clipped surrogate (arXiv:1707.06347), with separate bounds (DAPO) and the optional dual clip."""

from typing import Literal

from papo.losses.inputs import LossInputs, TokenLosses
from papo.losses.ratio import bounded_exp, keep, masked_difference
from papo.losses.tensors import Tokens
from papo.needs import Needs
from papo.values import value


@value
class Vanilla:
    """ℓ = −min(ρ·A, clip(ρ, 1−low, 1+high)·A) for each token, ρ = exp(logprobs − old_logprobs)."""

    kind: Literal["vanilla"] = "vanilla"
    clip_ratio_low: float = 0.2
    """The ratio is clipped below 1 − this, in [0, 1]."""
    clip_ratio_high: float = 0.2
    """The ratio is clipped above 1 + this; 0.28 is DAPO's clip-higher (arXiv:2503.14476)."""
    clip_ratio_c: float | None = None
    """Dual clip (arXiv:1912.09729): a token of negative advantage loses at most c·|A|. None = off; verl uses 3."""

    def __post_init__(self) -> None:
        if not 0 <= self.clip_ratio_low <= 1:
            raise ValueError(f"clip_ratio_low is {self.clip_ratio_low}: use 0 to 1, a ratio is never negative.")
        if not self.clip_ratio_high >= 0:
            raise ValueError(f"clip_ratio_high is {self.clip_ratio_high}: use 0 or more; the upper bound is 1 + this.")
        if self.clip_ratio_c is not None and not self.clip_ratio_c > 1:
            raise ValueError(f"clip_ratio_c is {self.clip_ratio_c}: use a number above 1 (verl: 3), or null for off.")

    @property
    def needs(self) -> Needs:
        return Needs()

    def token_losses(self, inputs: LossInputs, *, log_ratio_clamp: float | None = 20.0) -> TokenLosses:
        """The loss of every token, with which of them were clipped."""
        mask = inputs.completion_mask
        advantages = keep(inputs.advantages, mask)
        log_ratio = masked_difference(inputs.logprobs, inputs.old_logprobs, mask)
        ratio = bounded_exp(log_ratio, log_ratio_clamp=log_ratio_clamp)
        unclipped = -ratio * advantages
        pessimistic = clipped_surrogate(ratio, advantages, low=self.clip_ratio_low, high=self.clip_ratio_high)
        losses, clipped_lower = pessimistic, mask & False
        if self.clip_ratio_c is not None:
            ceiling = -self.clip_ratio_c * advantages
            clipped_lower = mask & (advantages < 0) & (pessimistic > ceiling)
            losses = pessimistic.where(~clipped_lower, ceiling)
        return TokenLosses(
            losses=losses, ratio=ratio, clipped=mask & (pessimistic > unclipped), clipped_lower=clipped_lower
        )


def clipped_surrogate(ratio: Tokens, advantages: Tokens, *, low: float, high: float) -> Tokens:
    """−min(r·A, clip(r, 1−low, 1+high)·A): PPO, arXiv:1707.06347 eq. 7, with separate bounds."""
    return -(ratio * advantages).minimum(ratio.clamp(1 - low, 1 + high) * advantages)
