"""Log-ratios with the masked positions taken out before anything else happens to them."""

from typing import Literal

from papo.losses.tensors import Rows, TokenMask, Tokens

SequenceRatioNorm = Literal["mean", "sum"]
ImportanceSamplingLevel = Literal["token", "sequence"]


def masked_difference(logprobs: Tokens, other: Tokens, mask: TokenMask) -> Tokens:
    """logprobs − other where `mask`, exactly 0 elsewhere, in value and in gradient.

    Masked before anything nonlinear: NaN or inf under the mask reaches neither exp nor a 0·inf gradient.
    """
    return keep(logprobs - other, mask)


def keep(values: Tokens, mask: TokenMask) -> Tokens:
    """`values` where `mask`, exactly 0 elsewhere."""
    return values.masked_fill(~mask, 0.0)


def bounded_exp(log_ratio: Tokens, *, log_ratio_clamp: float | None) -> Tokens:
    """exp of the log-ratio kept within ±log_ratio_clamp (verl: 20; None as in TRL); no gradient beyond the bound."""
    return (log_ratio if log_ratio_clamp is None else log_ratio.clamp(-log_ratio_clamp, log_ratio_clamp)).exp()


def sequence_log_ratio(log_ratio: Tokens, mask: TokenMask, *, norm: SequenceRatioNorm) -> Tokens:
    """The mean (or sum) over a row's tokens of a masked log-ratio, repeated on its tokens, 0 where masked.

    The mean is GSPO's 1/|y| power (arXiv:2507.18071 eq. 7); the sum is the plain ratio of the sequence's
    probabilities, whose spread grows with its length.
    """
    rows: Rows = log_ratio.sum(-1)
    if norm == "mean":
        rows = rows / mask.sum(-1).clamp(min=1)
    return keep(rows[:, None].expand_as(log_ratio), mask)


def policy_log_ratio(
    logprobs: Tokens,
    old_logprobs: Tokens,
    mask: TokenMask,
    *,
    level: ImportanceSamplingLevel,
    norm: SequenceRatioNorm = "mean",
) -> Tokens:
    """log π/π_old of each token, or of its sequence, with gradient; 0 where masked."""
    log_ratio = masked_difference(logprobs, old_logprobs, mask)
    return log_ratio if level == "token" else sequence_log_ratio(log_ratio, mask, norm=norm)
