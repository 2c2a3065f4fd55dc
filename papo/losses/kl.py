"""Estimators of the KL divergence from the reference, for a loss: one number a sampled token.

With d = logprobs − ref_logprobs of a token drawn from the policy:

    k1            d                   unbiased; its gradient as a loss is 0 in expectation
    k2            d²/2                biased in value; its gradient is that of KL(policy‖reference)
    k3            e^−d + d − 1        unbiased, never negative; its gradient is that of KL(reference‖policy)
    k3_reversed   e^d − d − 1         biased: its mean is χ² − KL; kept for comparison with texts that print it
    abs           |d|                 biased; verl's
    k1+, k3+      the value of k1 (k3) with the gradient of k2: unbiased in both (verl's straight-through forms)

Schulman, "Approximating KL divergence" (2020); k3 in the loss: DeepSeekMath, arXiv:2402.03300 eq. 4.
"""

from typing import Literal

from papo.losses.ratio import keep, masked_difference, sequence_log_ratio
from papo.losses.tensors import TokenMask, Tokens

KlType = Literal["k1", "k2", "k3", "k3_reversed", "abs", "k1+", "k3+"]
KlLevel = Literal["token", "sequence"]


def token_kl(
    logprobs: Tokens,
    ref_logprobs: Tokens,
    mask: TokenMask,
    *,
    kl_type: KlType,
    kl_level: KlLevel = "token",
    kl_clamp: float | None = 20.0,
    kl_value_clamp: float | None = 10.0,
) -> Tokens:
    """The estimate of each token, 0 where masked; at level sequence that of the row's mean d, on each of its tokens.

    The exponential forms keep their exponent within ±kl_clamp and the result within ±kl_value_clamp, without a
    gradient beyond either (verl: 20 and 10); None is no bound (TRL).
    """
    difference = masked_difference(logprobs, ref_logprobs, mask)
    if kl_level == "sequence":
        difference = sequence_log_ratio(difference, mask, norm="mean")
    if kl_type in ("k1+", "k3+"):
        value = _estimate(difference.detach(), kl_type="k1" if kl_type == "k1+" else "k3", clamp=kl_clamp)
        gradient = 0.5 * difference.square()
        return _bounded(value, kl_type, kl_value_clamp) + (gradient - gradient.detach())
    return keep(_bounded(_estimate(difference, kl_type=kl_type, clamp=kl_clamp), kl_type, kl_value_clamp), mask)


def _estimate(difference: Tokens, *, kl_type: KlType, clamp: float | None) -> Tokens:
    if kl_type == "k1":
        return difference
    if kl_type == "abs":
        return difference.abs()
    if kl_type == "k2":
        return 0.5 * difference.square()
    exponent = difference if kl_type == "k3_reversed" else -difference
    exponent = exponent if clamp is None else exponent.clamp(-clamp, clamp)
    return exponent.exp() - exponent - 1


def _bounded(estimate: Tokens, kl_type: KlType, clamp: float | None) -> Tokens:
    """Only the exponential forms are bounded: the others grow slowly."""
    return estimate.clamp(-clamp, clamp) if clamp is not None and kl_type.startswith("k3") else estimate
