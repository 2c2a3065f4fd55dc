"""The scalar that an update differentiates, with the sums that its metrics are made of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from papo.losses.correction import Corrections, corrections
from papo.losses.inputs import LossInputs, TokenLosses
from papo.losses.kl import token_kl
from papo.losses.ratio import keep, masked_difference
from papo.losses.tensors import Scalar, TokenMask, Tokens

__all__ = ["LossInputs", "Objective", "TokenLosses", "merge_sums", "policy_objective"]

if TYPE_CHECKING:
    from papo.algorithm import Algorithm
else:
    Algorithm = Any  # papo.algorithm is made of this package's losses, so it comes after it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Objective:
    """`loss` to call backward on, and what to add up for the metrics."""

    loss: Scalar
    """Σ_b w_b Σ_t (policy loss + KL − entropy bonus): this micro-batch's part of the batch's loss."""
    sums: dict[str, Scalar]
    """Detached float64 numbers. Those whose name ends in `_max` combine by max, the others by adding: `merge_sums`.

    policy_loss, kl_loss, entropy   weighted as in the loss (their batch sums are the batch's values; kl_loss and
                                    entropy before their coefficients)
    tokens, rows                    training tokens, and rows that have any
    credited                        training tokens whose advantage, as weighed, is not 0
    clipped, clipped_lower          tokens whose clipped (dual-clipped) term is active
    clamped_log_ratios, clamped_kl  tokens beyond log_ratio_clamp, and beyond kl_clamp
    ppo_kl, kl                      token sums of old_logprobs − logprobs and of the KL estimate: divide by tokens
    sampler_gap                     token sum of |exp(logprobs_old) − exp(sampler_logprobs)|: divide by sampler_tokens
    ratio_max, ratio_deviation_max  largest ratio and largest |ratio − 1|
    sampler_gap_max                 largest |exp(logprobs_old) − exp(sampler_logprobs)|
    sampler_k1, sampler_k3          token sums of the KL estimates of sampler against trainer: divide by sampler_tokens
    correction, correction_squared  token sums of the correction's weights and of their squares (effective sample
                                    size: correction² / (tokens · correction_squared)), and of the weights uncapped
    """


def policy_objective(algorithm: Algorithm, inputs: LossInputs) -> Objective:
    """The loss of one micro-batch. Raises ValueError if an input that the settings need is missing.

    A finite result is not promised for non-finite inputs under a True mask: the caller checks before it steps.
    """
    mask = inputs.completion_mask
    policy = algorithm.policy_loss.token_losses(inputs, log_ratio_clamp=algorithm.log_ratio_clamp)
    sums = _policy_sums(policy, inputs, algorithm.log_ratio_clamp) | _sampler_sums(inputs)
    corrected, correction_sums = _corrected(algorithm, policy.losses, inputs)
    sums |= correction_sums
    loss = _weighted(corrected, inputs)
    sums["policy_loss"] = loss.detach().double()
    if algorithm.use_kl_loss:
        kl = _kl_tokens(algorithm, inputs, policy.ratio)
        kl_loss = _weighted(kl, inputs)
        loss = loss + algorithm.kl_loss_coef * kl_loss
        sums |= {"kl_loss": kl_loss.detach().double(), "kl": kl.detach().double().sum()}
        sums["clamped_kl"] = _beyond(inputs.logprobs, inputs.ref_logprobs, mask, algorithm.kl_clamp)
    if algorithm.entropy_coeff != 0.0 and inputs.entropies is None:
        raise ValueError("entropy_coeff is set but the inputs have no entropies: compute them with the log-probs.")
    if inputs.entropies is not None:
        entropy = _weighted(keep(inputs.entropies, mask), inputs)
        sums["entropy"] = entropy.detach().double()
        if algorithm.entropy_coeff != 0.0:
            loss = loss - algorithm.entropy_coeff * entropy
    return Objective(loss=loss, sums=sums)


def merge_sums(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sums of a batch from those of its micro-batches and ranks: names ending in `_max` by max, others added."""
    merged: dict[str, float] = {}
    for part in parts:
        for name, number in part.items():
            if name not in merged:
                merged[name] = number
            else:
                merged[name] = max(merged[name], number) if name.endswith("_max") else merged[name] + number
    return merged


def _weighted(token_values: Tokens, inputs: LossInputs) -> Scalar:
    return (inputs.row_weights.to(token_values.dtype) * token_values.sum(-1)).sum()


def _corrected(algorithm: Algorithm, losses: Tokens, inputs: LossInputs) -> tuple[Tokens, dict[str, Scalar]]:
    """The policy losses times the weights of sampler/trainer correction, and the sums of those."""
    settings, mask = algorithm.rollout_correction, inputs.completion_mask
    if inputs.correction_weights is not None:
        given = keep(inputs.correction_weights, mask)
        sums = {"correction": given.double().sum(), "correction_squared": given.double().square().sum()}
        return losses * given, sums | {"credited": _credited(inputs, given)}
    if not settings.weighs:
        return losses, {}
    if inputs.sampler_logprobs is None:
        raise ValueError("rollout_is is set but the inputs have no sampler_logprobs: take them from the rollouts.")
    made: Corrections = corrections(
        settings, inputs.old_logprobs, inputs.sampler_logprobs, mask, log_ratio_clamp=algorithm.log_ratio_clamp
    )
    sums = {
        "credited": _credited(inputs, made.weights),
        "correction": made.weights.double().sum(),
        "correction_squared": made.weights.double().square().sum(),
        "correction_uncapped": made.uncapped.double().sum(),
    }
    return losses * made.weights, sums


def _credited(inputs: LossInputs, weights: Tokens | None = None) -> Scalar:
    """Training tokens with an advantage, and a weight, other than 0: those that the policy loss can learn from."""
    credited = keep(inputs.advantages, inputs.completion_mask) != 0
    return (credited if weights is None else credited & (weights != 0)).double().sum()


def _kl_tokens(algorithm: Algorithm, inputs: LossInputs, ratio: Tokens) -> Tokens:
    if inputs.ref_logprobs is None:
        raise ValueError("use_kl_loss is set but the inputs have no ref_logprobs: run the reference stage first.")
    kl = token_kl(
        inputs.logprobs,
        inputs.ref_logprobs,
        inputs.completion_mask,
        kl_type=algorithm.kl_loss_type,
        kl_level=algorithm.kl_level,
        kl_clamp=algorithm.kl_clamp,
        kl_value_clamp=algorithm.kl_value_clamp,
    )
    if algorithm.use_bias_correction_kl:
        kl = kl * ratio
    if algorithm.kl_on_zero_advantage:
        return kl
    has_signal = (keep(inputs.advantages, inputs.completion_mask) != 0).any(-1, keepdim=True)
    return kl.masked_fill(~has_signal, 0.0)


def _policy_sums(policy: TokenLosses, inputs: LossInputs, log_ratio_clamp: float | None) -> dict[str, Scalar]:
    mask = inputs.completion_mask
    ratio = policy.ratio.detach().double()
    difference = masked_difference(inputs.old_logprobs, inputs.logprobs.detach(), mask)
    return {
        "tokens": mask.double().sum(),
        "rows": mask.any(-1).double().sum(),
        "credited": _credited(inputs),
        "clipped": policy.clipped.double().sum(),
        "clipped_lower": policy.clipped_lower.double().sum(),
        "clamped_log_ratios": _beyond(inputs.logprobs, inputs.old_logprobs, mask, log_ratio_clamp),
        "ppo_kl": difference.double().sum(),
        "ratio_max": _largest(ratio.masked_fill(~mask, 0.0)),
        "ratio_deviation_max": _largest((ratio - 1).abs().masked_fill(~mask, 0.0)),
    }


def _sampler_sums(inputs: LossInputs) -> dict[str, Scalar]:
    if inputs.sampler_logprobs is None:
        return {}
    mask = inputs.completion_mask
    gap = (keep(inputs.old_logprobs, mask).double().exp() - keep(inputs.sampler_logprobs, mask).double().exp()).abs()
    behind = masked_difference(inputs.sampler_logprobs, inputs.old_logprobs, mask).double()
    return {
        "sampler_gap": gap.sum(),
        "sampler_gap_max": _largest(gap),
        "sampler_tokens": mask.double().sum(),
        "sampler_k1": behind.sum(),
        "sampler_k3": keep((-behind).exp() + behind - 1, mask).sum(),
    }


def _beyond(logprobs: Tokens, other: Tokens | None, mask: TokenMask, bound: float | None) -> Scalar:
    if other is None or bound is None:
        return logprobs.new_zeros(()).double()
    return (masked_difference(logprobs.detach(), other, mask).abs() > bound).double().sum()


def _largest(token_values: Tokens) -> Scalar:
    return token_values.max() if token_values.numel() else token_values.sum()
