"""Estimators of the KL divergence from the reference, for a loss: one number a sampled token.

With d = logprobs − ref_logprobs of a token drawn from the policy:

    k1            d                   unbiased; its gradient as a loss is 0 in expectation
    k2            d²/2                biased in value; its gradient is that of KL(policy‖reference)
    k3            e^−d + d − 1        unbiased, never negative; its gradient is that of KL(reference‖policy)
    k3_reversed   e^d − d − 1         biased: its mean is χ² − KL; kept for comparison with texts that print it

Schulman, "Approximating KL divergence" (2020); k3 in the loss: DeepSeekMath, arXiv:2402.03300 eq. 4.
"""

from typing import Literal

from papo.losses.ratio import masked_difference
from papo.losses.tensors import TokenMask, Tokens

KlType = Literal["k1", "k2", "k3", "k3_reversed"]


def token_kl(
    logprobs: Tokens,
    ref_logprobs: Tokens,
    mask: TokenMask,
    *,
    kl_type: KlType,
    kl_clamp: float | None = 20.0,
    kl_value_clamp: float | None = 10.0,
) -> Tokens:
    """The estimate of each token, 0 where masked.

    The exponential forms keep their exponent within ±kl_clamp and the result within ±kl_value_clamp, without a
    gradient beyond either (verl: 20 and 10); None is no bound (TRL).
    """
    difference = masked_difference(logprobs, ref_logprobs, mask)
    if kl_type == "k1":
        return difference
    if kl_type == "k2":
        return 0.5 * difference.square()
    exponent = difference if kl_type == "k3_reversed" else -difference
    exponent = exponent if kl_clamp is None else exponent.clamp(-kl_clamp, kl_clamp)
    estimate = exponent.exp() - exponent - 1
    return estimate if kl_value_clamp is None else estimate.clamp(-kl_value_clamp, kl_value_clamp)
