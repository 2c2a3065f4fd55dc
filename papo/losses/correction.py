"""Sampler and trainer disagree on probabilities: what each token of a rollout then weighs, and which rows are dropped.

With log-ratio = old_logprobs − sampler_logprobs. Truncated importance sampling caps the weight (Yao et al. 2025; C = 2
in verl, 3 in TRL), IcePop drops what is outside a band, rejection drops rows by how far their mean log-ratio is off.
"""

from dataclasses import dataclass
from typing import Literal

from papo.losses.ratio import keep, masked_difference, sequence_log_ratio
from papo.losses.tensors import Scalar, TokenMask, Tokens
from papo.needs import Needs
from papo.values import value

RolloutIs = Literal["none", "token", "sequence", "geometric"]
RolloutRs = Literal[
    "none", "token_k1", "token_k2", "token_k3", "seq_mean_k1", "seq_mean_k2", "seq_mean_k3",
    "seq_sum_k1", "seq_sum_k2", "seq_sum_k3", "seq_max_k1", "seq_max_k2", "seq_max_k3",
]  # fmt: skip


@value
class RolloutCorrection:
    """Weights (rollout_is) and rejection (rollout_rs); both off by default: the sampler may be the trainer."""

    rollout_is: RolloutIs = "none"
    """Weight of a token: exp of its log-ratio, of the row's sum (its variance grows with length), of the row's mean."""
    rollout_is_threshold: float = 2.0
    """C, the largest weight."""
    rollout_is_threshold_low: float = 0.0
    """The least weight that rollout_is_mode mask keeps."""
    rollout_is_mode: Literal["truncate", "mask"] = "truncate"
    """truncate: weights above C become C (TIS); mask: weights outside [low, C] become 0 (IcePop, sequence mask)."""
    rollout_is_batch_normalize: bool = False
    """Divide the weights by their mean over the batch's training tokens, without those that are rejected."""
    rollout_rs: RolloutRs = "none"
    """What is tested for rejection: the ratio exp(log-ratio) (k1), or k2 = d²/2, k3 = e^d − d − 1; of a token, or of
    the row's mean, sum or worst token, which drops the whole row."""
    rollout_rs_low: float = 0.5
    """Of k1: the least ratio that is kept."""
    rollout_rs_high: float = 2.0
    """Of k1: the largest ratio that is kept; of k2 and k3: the largest value."""
    bypass_mode: bool = False
    """Use sampler_logprobs as old_logprobs: no pass of the trainer, the clip does the correcting."""

    def __post_init__(self) -> None:
        if not 0 <= self.rollout_is_threshold_low < self.rollout_is_threshold:
            raise ValueError(
                f"weights are kept from rollout_is_threshold_low {self.rollout_is_threshold_low} to"
                f" rollout_is_threshold {self.rollout_is_threshold}: use 0 or more, the lower one first."
            )
        if not 0 <= self.rollout_rs_low < self.rollout_rs_high:
            raise ValueError(
                f"rejection keeps rollout_rs_low {self.rollout_rs_low} to rollout_rs_high {self.rollout_rs_high}:"
                " use 0 or more, the lower one first."
            )
        if self.bypass_mode and (self.rollout_is, self.rollout_rs) != ("none", "none"):
            raise ValueError(
                "bypass_mode takes sampler_logprobs for old_logprobs, so there is nothing left to weigh or reject:"
                " set rollout_is and rollout_rs to none."
            )

    @property
    def needs(self) -> Needs:
        return Needs(corrections=self.rollout_is_batch_normalize or self.rollout_rs != "none")

    @property
    def weighs(self) -> bool:
        """Whether tokens get weights other than 1."""
        return self.rollout_is != "none"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Corrections:
    """Detached."""

    weights: Tokens
    """What multiplies the loss of each token; 0 where masked."""
    uncapped: Tokens
    """The same before cap, band and normalisation; 0 where masked."""
    kept: TokenMask
    """Training tokens that are not rejected: the mask to train with, from which divisors are then counted."""


def corrections(
    settings: RolloutCorrection,
    old_logprobs: Tokens,
    sampler_logprobs: Tokens,
    mask: TokenMask,
    *,
    log_ratio_clamp: float | None = 20.0,
) -> Corrections:
    """Weights and rejection of a batch; it must be the whole one with rollout_is_batch_normalize alone.

    A sampler log-prob that is NaN is unknown: it counts as equal to the trainer's.
    """
    old = old_logprobs.detach()
    log_ratio = masked_difference(old, sampler_logprobs.where(~sampler_logprobs.isnan(), old), mask)
    uncapped = keep(_bounded(_of_level(settings.rollout_is, log_ratio, mask), log_ratio_clamp).exp(), mask)
    high, low = settings.rollout_is_threshold, settings.rollout_is_threshold_low
    if not settings.weighs:
        weights = uncapped
    elif settings.rollout_is_mode == "truncate":
        weights = uncapped.clamp(max=high)
    else:
        weights = uncapped.masked_fill((uncapped > high) | (uncapped < low), 0.0)
    kept = mask & ~_rejected(settings, log_ratio, mask)
    if settings.rollout_is_batch_normalize:
        weights = batch_normalized(settings, weights, kept)
    return Corrections(weights=weights, uncapped=uncapped, kept=kept)


def batch_normalized(settings: RolloutCorrection, weights: Tokens, kept: TokenMask) -> Tokens:
    """`weights` divided by their mean over the kept training tokens, or rows where a row has one weight; left alone
    where every one is 0.

    What is rejected is out of the mean: the weights that train have mean 1.
    """
    counted = keep(weights, kept)
    if settings.rollout_is in ("sequence", "geometric"):
        rows = kept.any(-1)
        total, count = counted.amax(-1)[rows].sum(), rows.sum()
    else:
        total, count = counted.sum(), kept.sum()
    return weights * count / total if total > 0 else weights


def effective_sample_size(weights: Tokens, mask: TokenMask) -> Scalar:
    """(Σ w)² / (n·Σ w²) over training tokens, in [1/n, 1]: the share of the batch that the weights leave; 0 if none."""
    kept = keep(weights, mask).double()
    return kept.sum().square() / (mask.sum() * kept.square().sum()).clamp(min=1e-300)


def _of_level(level: RolloutIs, log_ratio: Tokens, mask: TokenMask) -> Tokens:
    match level:
        case "none":
            return log_ratio * 0.0
        case "token":
            return log_ratio
        case "sequence":
            return sequence_log_ratio(log_ratio, mask, norm="sum")
        case "geometric":
            return sequence_log_ratio(log_ratio, mask, norm="mean")


def _bounded(log_ratio: Tokens, clamp: float | None) -> Tokens:
    return log_ratio if clamp is None else log_ratio.clamp(-clamp, clamp)


def _rejected(settings: RolloutCorrection, log_ratio: Tokens, mask: TokenMask) -> TokenMask:
    if settings.rollout_rs == "none":
        return mask & False
    place, _, estimator = settings.rollout_rs.rpartition("_")
    worst_low, worst_high = (_statistic(log_ratio, estimator, place, mask, least=least) for least in (True, False))
    if estimator == "k1":
        low, high = settings.rollout_rs_low, settings.rollout_rs_high
        return mask & ((worst_low.exp() < low) | (worst_high.exp() > high))
    return mask & (worst_high > settings.rollout_rs_high)


def _statistic(log_ratio: Tokens, estimator: str, place: str, mask: TokenMask, *, least: bool) -> Tokens:
    if estimator == "k2":
        log_ratio = 0.5 * log_ratio.square()
    elif estimator == "k3":
        log_ratio = log_ratio.exp() - log_ratio - 1
    if place == "token":
        return log_ratio
    if place == "seq_max":
        rows = (-(-log_ratio).amax(-1)) if least else log_ratio.amax(-1)
        return rows[:, None].expand_as(log_ratio)
    return sequence_log_ratio(log_ratio, mask, norm="mean" if place == "seq_mean" else "sum")
