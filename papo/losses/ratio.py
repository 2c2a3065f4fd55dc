"""Log-ratios with the masked positions taken out before anything else happens to them."""

from papo.losses.tensors import TokenMask, Tokens


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
