"""How far sampler and trainer are apart on the same tokens, as sums that micro-batches and ranks add up."""

from collections.abc import Mapping

from papo.losses import LossInputs
from papo.losses.ratio import masked_difference


def sampler_sums(inputs: LossInputs, *, bypass: bool = False) -> dict[str, float]:
    """Token sums of one micro-batch; masked tokens count nowhere.

    The trainer's log-probs are the old ones, or with `bypass`, where those are the sampler's own, the present ones.
    """
    if inputs.sampler_logprobs is None:
        return {}
    mask = inputs.completion_mask
    trainer = inputs.logprobs if bypass else inputs.old_logprobs
    apart = masked_difference(trainer.detach(), inputs.sampler_logprobs, mask).double()
    weight = apart.exp()[mask]
    return {
        "logprob_gap": float(apart.abs().sum()),
        "logprob_gap_max": float(apart.abs().max()) if apart.numel() else 0.0,
        "sampler_weight": float(weight.sum()),
        "sampler_weight_squared": float(weight.square().sum()),
        "gap_k1": float(-apart.sum()),
        "gap_k3": float((weight - 1).sum() - apart.sum()),
    }


def sampler_figures(sums: Mapping[str, float]) -> dict[str, float | None]:
    """The batch's figures, by their names in `papo.metrics.UpdateStats`; None where nothing was measured."""
    tokens = sums.get("tokens", 0.0)
    if "logprob_gap" not in sums or not tokens:
        return dict.fromkeys(FIGURES)
    return {
        "sampler_logprob_gap_mean": sums["logprob_gap"] / tokens,
        "sampler_logprob_gap_max": sums["logprob_gap_max"],
        "sampler_k1": sums["gap_k1"] / tokens,
        "sampler_k3": sums["gap_k3"] / tokens,
        "sampler_effective_sample_size": sums["sampler_weight"] ** 2
        / max(tokens * sums["sampler_weight_squared"], 1e-300),
    }


FIGURES = (
    "sampler_logprob_gap_mean",
    "sampler_logprob_gap_max",
    "sampler_k1",
    "sampler_k3",
    "sampler_effective_sample_size",
)
