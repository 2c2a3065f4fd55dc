"""PPO's clipped surrogate (arXiv:1707.06347), with separate bounds (DAPO), dual clip and two-sided clipping."""

from typing import Literal

from papo.losses.inputs import LossInputs, TokenLosses
from papo.losses.ratio import ImportanceSamplingLevel, SequenceRatioNorm, bounded_exp, keep, policy_log_ratio
from papo.losses.tensors import TokenMask, Tokens
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
    delta: float | None = None
    """Two-sided clipping (INTELLECT-2, TRL): upper bound on the ratio in the unclipped term, above 1 + high."""
    importance_sampling_level: ImportanceSamplingLevel = "token"
    """Whether a token has its own ratio or that of its sequence (which makes this loss GSPO's)."""
    sequence_ratio_norm: SequenceRatioNorm = "mean"
    """With level sequence: exp of the mean log-ratio (GSPO), or of the sum (RLOO in TRL; grows with length)."""

    def __post_init__(self) -> None:
        check_clip(low=self.clip_ratio_low, high=self.clip_ratio_high)
        if self.clip_ratio_c is not None and not self.clip_ratio_c > 1:
            raise ValueError(f"clip_ratio_c is {self.clip_ratio_c}: use a number above 1 (verl: 3), or null for off.")
        if self.delta is not None and not self.delta > 1 + self.clip_ratio_high:
            raise ValueError(
                f"delta is {self.delta}, but the ratio is clipped at {1 + self.clip_ratio_high}: use more than that."
            )

    @property
    def needs(self) -> Needs:
        return Needs()

    def token_losses(self, inputs: LossInputs, *, log_ratio_clamp: float | None = 20.0) -> TokenLosses:
        """The loss of every token, with which of them were clipped."""
        log_ratio = policy_log_ratio(
            inputs.logprobs,
            inputs.old_logprobs,
            inputs.completion_mask,
            level=self.importance_sampling_level,
            norm=self.sequence_ratio_norm,
        )
        ratio = bounded_exp(log_ratio, log_ratio_clamp=log_ratio_clamp)
        return clipped_losses(
            ratio,
            keep(inputs.advantages, inputs.completion_mask),
            inputs.completion_mask,
            low=self.clip_ratio_low,
            high=self.clip_ratio_high,
            dual=self.clip_ratio_c,
            delta=self.delta,
        )


def clipped_losses(
    ratio: Tokens,
    advantages: Tokens,
    mask: TokenMask,
    *,
    low: float,
    high: float,
    dual: float | None = None,
    delta: float | None = None,
) -> TokenLosses:
    """−min(r·A, clip(r, 1−low, 1+high)·A): PPO, arXiv:1707.06347 eq. 7, with its optional further bounds."""
    unclipped = -(ratio if delta is None else ratio.clamp(max=delta)) * advantages
    pessimistic = unclipped.maximum(-ratio.clamp(1 - low, 1 + high) * advantages)
    losses, clipped_lower = pessimistic, mask & False
    if dual is not None:
        ceiling = -dual * advantages
        clipped_lower = mask & (advantages < 0) & (pessimistic > ceiling)
        losses = pessimistic.where(~clipped_lower, ceiling)
    return TokenLosses(
        losses=losses, ratio=ratio, clipped=mask & (pessimistic > unclipped), clipped_lower=clipped_lower
    )


def check_clip(*, low: float, high: float) -> None:
    """Raise ValueError on bounds that no ratio can meet."""
    if not 0 <= low <= 1:
        raise ValueError(f"clip_ratio_low is {low}: use 0 to 1, a ratio is never negative.")
    if not high >= 0:
        raise ValueError(f"clip_ratio_high is {high}: use 0 or more; the upper bound is 1 + this.")
