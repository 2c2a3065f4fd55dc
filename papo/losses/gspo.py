"""GSPO: the sequence is what is weighted and clipped (arXiv:2507.18071), and its form for token advantages."""

from typing import ClassVar, Literal

from papo.losses.clip import check_clip, clipped_losses
from papo.losses.inputs import LossInputs, TokenLosses
from papo.losses.ratio import (
    SequenceRatioNorm,
    bounded_exp,
    keep,
    masked_difference,
    policy_log_ratio,
    sequence_log_ratio,
)
from papo.needs import Needs
from papo.values import value


@value
class Gspo:
    """ℓ = −min(s·A, clip(s, 1−low, 1+high)·A) of each row, s = exp(mean over its tokens of log π/π_old)  (eq. 5, 7).

    A row's number stands on each of its tokens: use loss_agg_mode seq-mean-token-mean, as the paper.
    """

    kind: Literal["gspo"] = "gspo"
    clip_ratio_low: float = 3e-4
    """The row's ratio is clipped below 1 − this: two orders under PPO's, as a mean log-ratio moves that much less."""
    clip_ratio_high: float = 4e-4
    """The row's ratio is clipped above 1 + this."""
    sequence_ratio_norm: SequenceRatioNorm = "mean"
    """mean: the paper's; sum: the unnormalised ratio, which needs 0.2-type bounds."""
    one_advantage_a_row: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_clip(low=self.clip_ratio_low, high=self.clip_ratio_high)

    @property
    def needs(self) -> Needs:
        return Needs()

    def token_losses(self, inputs: LossInputs, *, log_ratio_clamp: float | None = 20.0) -> TokenLosses:
        """The row's loss on every token of it, with the gradient through the row's ratio."""
        mask = inputs.completion_mask
        log_ratio = policy_log_ratio(
            inputs.logprobs, inputs.old_logprobs, mask, level="sequence", norm=self.sequence_ratio_norm
        )
        ratio = bounded_exp(log_ratio, log_ratio_clamp=log_ratio_clamp)
        advantages = keep(inputs.advantages, mask)
        return clipped_losses(ratio, advantages, mask, low=self.clip_ratio_low, high=self.clip_ratio_high)


@value
class GspoToken:
    """GSPO with s_t = sg[s]·π_t/sg[π_t]: the row's ratio in value, each token's own gradient (eq. 13, 14).

    For advantages that vary over the tokens; equal to `gspo` in value and gradient where they do not.
    """

    kind: Literal["gspo_token"] = "gspo_token"
    clip_ratio_low: float = 3e-4
    """The row's ratio is clipped below 1 − this."""
    clip_ratio_high: float = 4e-4
    """The row's ratio is clipped above 1 + this."""
    sequence_ratio_norm: SequenceRatioNorm = "mean"
    """mean: the paper's; sum: the unnormalised ratio, which needs 0.2-type bounds."""

    def __post_init__(self) -> None:
        check_clip(low=self.clip_ratio_low, high=self.clip_ratio_high)

    @property
    def needs(self) -> Needs:
        return Needs()

    def token_losses(self, inputs: LossInputs, *, log_ratio_clamp: float | None = 20.0) -> TokenLosses:
        """The loss of every token, clipped by its row's ratio."""
        mask = inputs.completion_mask
        log_ratio = masked_difference(inputs.logprobs, inputs.old_logprobs, mask)
        of_row = sequence_log_ratio(log_ratio.detach(), mask, norm=self.sequence_ratio_norm)
        ratio = bounded_exp(of_row + (log_ratio - log_ratio.detach()), log_ratio_clamp=log_ratio_clamp)
        advantages = keep(inputs.advantages, mask)
        return clipped_losses(ratio, advantages, mask, low=self.clip_ratio_low, high=self.clip_ratio_high)
