"""GSPO, CISPO, clipping by sequence, KL times ratio, value loss, corrections and implicit-PRM losses against peers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from papo.advantages import Grpo
from papo.algorithm import Algorithm
from papo.losses import (
    Cispo,
    Gspo,
    GspoToken,
    LossInputs,
    RolloutCorrection,
    Vanilla,
    corrections,
    effective_sample_size,
    row_weights,
    value_objective,
)
from papo.losses.implicit_prm import BonWeight, absolute_accuracy, ce_losses, detached_dpo_losses, dpo_accuracy
from papo.losses.objective import policy_objective
from tests.golden.golden_vectors import assert_peer, cases, label, load, numbers
from tests.golden.test_losses import lengths, tensor

BASE = Algorithm(advantage=Grpo())
ROW_MEAN = 2e-8
"""verl divides row sums by length + 1e-8, which a mean that nearly cancels makes larger."""


def run(algorithm: Algorithm, **fields: Any) -> tuple[Tensor, Tensor]:
    """Loss and its gradient; a row's advantage is repeated on its tokens."""
    logprobs = tensor(fields.pop("logprobs")).requires_grad_()
    mask, advantages = numbers(fields.pop("mask")), numbers(fields.pop("advantages"))
    if advantages.ndim == 1:
        advantages = np.repeat(advantages[:, None], mask.shape[1], axis=1)
    weights = row_weights(
        lengths(mask),
        mode=algorithm.loss_agg_mode,
        constant=algorithm.loss_norm_constant,
        empty_rows=algorithm.empty_rows,
    )
    others = {name: tensor(number) for name, number in fields.items() if number is not None}
    inputs = LossInputs(
        logprobs=logprobs,
        advantages=tensor(advantages),
        completion_mask=tensor(mask).bool(),
        row_weights=torch.from_numpy(weights),
        **others,
    )
    objective = policy_objective(algorithm, inputs)
    objective.loss.backward()
    assert logprobs.grad is not None
    return objective.loss.detach(), logprobs.grad


def of_verl(inputs: dict[str, Any]) -> dict[str, Any]:
    return {
        "logprobs": inputs["log_prob"],
        "old_logprobs": inputs["old_log_prob"],
        "advantages": inputs["advantages"],
        "mask": inputs["response_mask"],
        "correction_weights": inputs["rollout_is_weights"],
    }


def of_trl(inputs: dict[str, Any]) -> dict[str, Any]:
    return {
        "logprobs": inputs["per_token_logps"],
        "old_logprobs": inputs["old_per_token_logps"],
        "advantages": inputs["advantages"],
        "mask": inputs["completion_mask"],
        "ref_logprobs": inputs.get("ref_per_token_logps"),
    }


@pytest.mark.parametrize(("peer", "case"), cases("verl_gspo_policy_loss", "verl_cispo_policy_loss"), ids=label)
def test_gspo_and_cispo_equal_verl(peer: str, case: dict[str, Any]):
    inputs = case["inputs"]
    low, high = inputs["config"]["clip_ratio_low"], inputs["config"]["clip_ratio_high"]
    is_gspo = peer == "verl_gspo_policy_loss"
    loss = GspoToken(clip_ratio_low=low, clip_ratio_high=high) if is_gspo else Cispo(
        cispo_ratio_min=1 - low, cispo_ratio_max=1 + high
    )  # fmt: skip
    algorithm = replace(
        BASE, policy_loss=loss, loss_agg_mode=inputs["loss_agg_mode"], log_ratio_clamp=10.0 if is_gspo else 20.0
    )
    found, gradient = run(algorithm, **of_verl(inputs))
    loose = ROW_MEAN if inputs["loss_agg_mode"] == "seq-mean-token-mean" else 0.0
    assert_peer(found, peer, case, "loss", loose=loose)
    assert_peer(gradient, peer, case, "grad_log_prob", loose=loose)


TRL = replace(
    BASE,
    loss_agg_mode="seq-mean-token-mean",
    empty_rows="count",
    log_ratio_clamp=None,
    kl_loss_coef=0.04,
    kl_clamp=None,
    kl_value_clamp=None,
    use_bias_correction_kl=True,
)
"""TRL's conventions: every row counts, nothing is clamped, k3 times the ratio."""
TRL_GSPO = replace(TRL, policy_loss=Gspo())
TRL_ALGORITHMS = {
    "eps_high5": replace(BASE, policy_loss=Cispo(cispo_ratio_max=5.0), log_ratio_clamp=None),
    "gspo_3e-4_4e-4": TRL_GSPO,
    "gspo_beta": replace(TRL, use_kl_loss=True, policy_loss=Gspo(clip_ratio_low=0.2, clip_ratio_high=0.2)),
    "beta0.04_bias_corrected": replace(TRL, use_kl_loss=True),
}


@pytest.mark.parametrize(("peer", "case"), cases("trl_gspo_loss", "trl_cispo_loss", "trl_grpo_kl_loss"), ids=label)
def test_losses_equal_trl(peer: str, case: dict[str, Any]):
    algorithm = TRL_ALGORITHMS[case["name"].split("/")[1]]
    found, gradient = run(algorithm, **of_trl(case["inputs"]))
    assert_peer(found, peer, case, "loss")
    assert_peer(gradient, peer, case, "grad")


@pytest.mark.parametrize(("peer", "case"), cases("trl_gspo_loss"), ids=label)
def test_clipping_by_sequence_is_gspo(peer: str, case: dict[str, Any]):
    """importance_sampling_level: sequence on the clip loss, with the same bounds."""
    algorithm = TRL_ALGORITHMS[case["name"].split("/")[1]]
    assert isinstance(algorithm.policy_loss, Gspo)
    bounds = {name: getattr(algorithm.policy_loss, name) for name in ("clip_ratio_low", "clip_ratio_high")}
    by_sequence = replace(algorithm, policy_loss=Vanilla(importance_sampling_level="sequence", **bounds))
    found, gradient = run(by_sequence, **of_trl(case["inputs"]))
    assert_peer(found, peer, case, "loss")
    assert_peer(gradient, peer, case, "grad")


@pytest.mark.parametrize(("peer", "case"), cases("trl_rloo_loss"), ids=label)
def test_clipping_by_the_summed_ratio_equals_trl(peer: str, case: dict[str, Any]):
    epsilon = case["inputs"]["epsilon"]
    loss = Vanilla(
        clip_ratio_low=epsilon, clip_ratio_high=epsilon, importance_sampling_level="sequence", sequence_ratio_norm="sum"
    )
    found, gradient = run(replace(TRL, policy_loss=loss), **of_trl(case["inputs"]))
    assert_peer(found, peer, case, "loss")
    assert_peer(gradient, peer, case, "grad")


@pytest.mark.parametrize(("peer", "case"), cases("prime_original_core"), ids=label)
def test_policy_and_value_loss_equal_prime(peer: str, case: dict[str, Any]):
    """The file's value loss is towards `advantages_for_policy`."""
    inputs, mask = case["inputs"], numbers(case["inputs"]["mask"])
    clip = Vanilla(clip_ratio_low=inputs["cliprange"], clip_ratio_high=inputs["cliprange"])
    found, _ = run(
        replace(BASE, policy_loss=clip, log_ratio_clamp=None),
        logprobs=inputs["log_prob"],
        old_logprobs=inputs["old_log_prob"],
        advantages=inputs["advantages_for_policy"],
        mask=mask,
    )
    assert_peer(found, peer, case, "pg_loss")
    objective = value_objective(
        tensor(inputs["values"]),
        tensor(inputs["old_values"]),
        tensor(inputs["advantages_for_policy"]),
        tensor(mask).bool(),
        torch.from_numpy(row_weights(lengths(mask), mode="token-mean")),
        cliprange_value=inputs.get("cliprange_value", inputs["cliprange"]),
    )
    assert_peer(objective.loss, peer, case, "vf_loss")
    assert_peer(objective.sums["value_clipped"] / objective.sums["value_tokens"], peer, case, "vf_clipfrac")


@pytest.mark.parametrize(("peer", "case"), cases("verl_value_loss"), ids=label)
def test_value_loss_equals_verl(peer: str, case: dict[str, Any]):
    inputs, mask = case["inputs"], numbers(case["inputs"]["response_mask"])
    values = tensor(inputs["vpreds"]).requires_grad_()
    mode = inputs["loss_agg_mode"]
    constant = mask.shape[1] if mode == "seq-mean-token-sum-norm" else None
    objective = value_objective(
        values,
        tensor(inputs["values"]),
        tensor(inputs["returns"]),
        tensor(mask).bool(),
        torch.from_numpy(row_weights(lengths(mask), mode=mode, constant=constant)),
        cliprange_value=inputs["cliprange_value"],
    )
    objective.loss.backward()
    loose = ROW_MEAN if mode == "seq-mean-token-mean" else 0.0
    assert_peer(objective.loss.detach(), peer, case, "vf_loss", loose=loose)
    assert_peer(values.grad, peer, case, "grad_vpreds", loose=loose)
    share = objective.sums["value_clipped"] / objective.sums["value_tokens"]
    assert_peer(share, peer, case, "vf_clipfrac", loose=ROW_MEAN)


@pytest.mark.parametrize(("peer", "case"), cases("verl_tis_weights"), ids=label)
def test_importance_weights_equal_verl(peer: str, case: dict[str, Any]):
    inputs, mask = case["inputs"], tensor(case["inputs"]["response_mask"]).bool()
    settings = RolloutCorrection(
        rollout_is=inputs["rollout_is"],
        rollout_is_threshold=inputs["rollout_is_threshold"],
        rollout_is_batch_normalize=inputs["rollout_is_batch_normalize"],
    )
    log_ratio = tensor(inputs["log_ratio"])
    made = corrections(settings, log_ratio, torch.zeros_like(log_ratio), mask)
    assert_peer(made.weights, peer, case, "weights")
    expected = case["outputs"]["metrics"]["rollout_is_eff_sample_size"]
    assert effective_sample_size(made.weights, mask).item() == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("peer", "case"), cases("trl_vllm_is_weights"), ids=label)
def test_importance_weights_equal_trl(peer: str, case: dict[str, Any]):
    inputs = case["inputs"]
    level, mode = inputs["mode"].split("_")
    settings = RolloutCorrection(
        rollout_is=level,
        rollout_is_mode=mode,
        rollout_is_threshold=inputs["clip_max"],
        rollout_is_threshold_low=inputs["clip_min"] or 0.0,
    )
    old = tensor(inputs["old_per_token_logps"])
    mask = torch.arange(old.shape[1]) < torch.tensor(inputs["lengths"])[:, None]
    made = corrections(settings, old, tensor(inputs["sampling_per_token_logps"]), mask, log_ratio_clamp=None)
    found = made.weights if level == "token" else made.weights[:, :1]
    assert_peer(found, peer, case, "importance_sampling_ratio", mask=mask if level == "token" else mask[:, :1])


@pytest.mark.parametrize(("peer", "case"), cases("verl_rejection_mask"), ids=label)
def test_rejection_equals_verl(peer: str, case: dict[str, Any]):
    """verl bands exp(−log-ratio): our limits are the reciprocal of its."""
    inputs, mask = case["inputs"], tensor(case["inputs"]["response_mask"]).bool()
    limits = inputs["rollout_rs_threshold"]
    if isinstance(limits, str):
        low, high = map(float, limits.split("_"))
        band = (1 / high, 1 / low)
    else:
        band = (0.0, limits)
    log_ratio = tensor(inputs["log_ratio"])
    settings = RolloutCorrection(rollout_rs=inputs["rollout_rs"], rollout_rs_low=band[0], rollout_rs_high=band[1])
    assert_peer(corrections(settings, log_ratio, torch.zeros_like(log_ratio), mask).kept, peer, case, "mask")


@pytest.mark.parametrize(("peer", "case"), cases("prime_implicit_prm_losses"), ids=label)
def test_implicit_prm_losses_equal_prime(peer: str, case: dict[str, Any]):
    """PRIME takes the log of a sigmoid, which saturates: compared where |β·ΣQ| is below 20."""
    inputs, outputs = case["inputs"], case["outputs"]
    labels = tensor(inputs["acc"])
    group = torch.arange(len(labels)) // inputs["n_samples"]
    mask = tensor(inputs["response_mask"])
    rewards = (inputs["beta"] * tensor(inputs["token_level_scores"]) * mask).sum(-1)
    if rewards.abs().max() < 20:
        check_loss(lambda r: ce_losses(r, labels).mean(), "ce", peer, case)
    weights: tuple[BonWeight, ...] = ("none", "bon_rm", "bon_acc")
    for weight in weights:
        if f"{case['name']}/detach_{weight}" not in load(peer)["excluded"]:
            check_loss(detached(labels, group, weight), f"detach_{weight}", peer, case)
    assert dpo_accuracy(rewards, labels, group) == pytest.approx(outputs["dpo_accuracy"], rel=1e-6)
    assert absolute_accuracy(rewards, labels) == pytest.approx(outputs["dpo_abs_accuracy"], rel=1e-6)


def detached(labels: Tensor, group: Tensor, weight: BonWeight) -> Callable[[Tensor], Tensor]:
    """PRIME takes the mean over rows of `none` and the sum of the others."""

    def loss(rewards: Tensor) -> Tensor:
        losses = detached_dpo_losses(rewards, labels, group, weight=weight)
        return losses.mean() if weight == "none" else losses.sum()

    return loss


def check_loss(loss: Any, name: str, peer: str, case: dict[str, Any]) -> None:
    inputs = case["inputs"]
    scores = tensor(inputs["token_level_scores"]).requires_grad_()
    found = loss((inputs["beta"] * scores * tensor(inputs["response_mask"])).sum(-1))
    found.backward()
    assert_peer(found.detach(), peer, case, f"{name}_loss")
    assert_peer(scores.grad, peer, case, f"{name}_grad")
