"""CISPO: the importance weight is clipped and detached, so that every token keeps a gradient (arXiv:2506.13585)."""

from typing import Literal

from papo.losses.inputs import LossInputs, TokenLosses
from papo.losses.ratio import ImportanceSamplingLevel, SequenceRatioNorm, bounded_exp, keep, policy_log_ratio
from papo.needs import Needs
from papo.values import value


@value
class Cispo:
    """ℓ = −sg[clip(ρ, min, max)]·A·logprobs. The bounds are those of the ratio itself, not distances from 1."""

    kind: Literal["cispo"] = "cispo"
    cispo_ratio_min: float | None = None
    """Least weight (verl: 1 − clip_ratio_low); null: none, as in the paper."""
    cispo_ratio_max: float = 5.0
    """Largest weight (TRL's epsilon_high, ScaleRL: 5; verl: 1 + clip_ratio_high)."""
    importance_sampling_level: ImportanceSamplingLevel = "token"
    """Whether a token has its own ratio or that of its sequence."""
    sequence_ratio_norm: SequenceRatioNorm = "mean"
    """With level sequence: exp of the mean log-ratio, or of the sum."""

    def __post_init__(self) -> None:
        if not self.cispo_ratio_max >= 1:
            raise ValueError(
                f"cispo_ratio_max is {self.cispo_ratio_max}: it bounds the ratio itself, so use 1 or more."
            )
        if self.cispo_ratio_min is not None and not 0 <= self.cispo_ratio_min <= 1:
            raise ValueError(f"cispo_ratio_min is {self.cispo_ratio_min}: use 0 to 1, or null for none.")

    @property
    def needs(self) -> Needs:
        return Needs()

    def token_losses(self, inputs: LossInputs, *, log_ratio_clamp: float | None = 20.0) -> TokenLosses:
        """The loss of every token. `clipped`: beyond the upper bound; `clipped_lower`: below the lower one."""
        mask = inputs.completion_mask
        log_ratio = policy_log_ratio(
            inputs.logprobs,
            inputs.old_logprobs,
            mask,
            level=self.importance_sampling_level,
            norm=self.sequence_ratio_norm,
        )
        ratio = bounded_exp(log_ratio, log_ratio_clamp=log_ratio_clamp)
        weight = ratio.detach().clamp(min=self.cispo_ratio_min, max=self.cispo_ratio_max)
        losses = -weight * keep(inputs.advantages, mask) * keep(inputs.logprobs, mask)
        return TokenLosses(
            losses=losses,
            ratio=ratio,
            clipped=mask & (ratio > self.cispo_ratio_max),
            clipped_lower=mask & (ratio < (self.cispo_ratio_min or 0.0)),
        )
