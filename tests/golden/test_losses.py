"""Losses, KL, aggregation and log-probs against verl and TRL, values and gradients, and by hand (G8, G11)."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from papo.advantages import Grpo
from papo.algorithm import Algorithm
from papo.losses import LossInputs, Vanilla, row_weights, token_entropies, token_kl, token_logprobs
from papo.losses.objective import Objective, policy_objective
from tests.golden.golden_vectors import assert_golden, load, numbers

BY_HAND = load("by_hand")


def tensor(values: object) -> Tensor:
    return torch.from_numpy(numbers(values))


def lengths(mask: object) -> np.ndarray:
    return numbers(mask).sum(1).astype(np.int64)


def row_mean_tolerance(peer: str, mode: str) -> float:
    """verl divides row sums by length + 1e-8, which a mean that nearly cancels makes larger."""
    return 2e-8 if peer.startswith("verl") and mode == "seq-mean-token-mean" else 1e-12


def run(case: dict[str, Any]) -> tuple[Objective, Tensor]:
    names = ("clip_ratio_low", "clip_ratio_high", "clip_ratio_c", "delta")
    settings: dict[str, Any] = {name: case.get(name) for name in names}
    clip = Vanilla(**settings)
    algorithm = Algorithm(
        advantage=Grpo(),
        policy_loss=clip,
        loss_agg_mode=case["mode"],
        loss_norm_constant=case["constant"],
        log_ratio_clamp=case["log_ratio_clamp"],
    )
    weights = row_weights(
        lengths(case["mask"]), mode=case["mode"], constant=case["constant"], empty_rows=case["empty_rows"]
    )
    logprobs = tensor(case["logprobs"]).requires_grad_()
    inputs = LossInputs(
        logprobs=logprobs,
        old_logprobs=tensor(case["old_logprobs"]),
        advantages=tensor(case["advantages"]),
        completion_mask=tensor(case["mask"]).bool(),
        row_weights=torch.from_numpy(weights),
        correction_weights=tensor(case["correction_weights"]) if case.get("correction_weights") else None,
    )
    objective = policy_objective(algorithm, inputs)
    objective.loss.backward()
    return objective, logprobs


@pytest.mark.parametrize(
    ("peer", "case"),
    [(peer, case) for peer in ("verl_ppo_policy_loss", "trl_grpo_loss") for case in load(peer)["cases"]],
    ids=lambda part: part if isinstance(part, str) else part["name"],
)
def test_policy_loss_equals_its_peers(peer: str, case: dict[str, Any]):
    objective, logprobs = run(case)
    tolerance = row_mean_tolerance(peer, case["mode"])
    wrong = case["wrong"]
    assert_golden(objective.loss.detach(), case["loss"], wrong["loss"], rtol=tolerance, atol=tolerance)
    assert_golden(logprobs.grad, case["grad"], wrong["grad"], rtol=max(tolerance, 1e-10), atol=tolerance)


@pytest.mark.parametrize("case", load("verl_ppo_policy_loss")["cases"], ids=lambda case: case["name"])
def test_policy_metrics_equal_verl(case: dict[str, Any]):
    """verl divides by a count + 1e-8, and clamps the log-ratio in ppo_kl where ours reports what it is."""
    objective, _ = run(case)
    found = {name: float(total / objective.sums["tokens"]) for name, total in objective.sums.items()}
    assert found["clipped"] == pytest.approx(case["clip_fraction"], rel=1e-7, abs=1e-12)
    assert found["clipped_lower"] == pytest.approx(case["clip_fraction_lower"], rel=1e-7, abs=1e-12)
    if objective.sums["clamped_log_ratios"] == 0:
        assert found["ppo_kl"] == pytest.approx(case["ppo_kl"], rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("case", load("verl_agg_loss")["cases"], ids=lambda case: case["name"])
def test_aggregation_equals_verl(case: dict[str, Any]):
    """With verl's global counts, the rest of the batch is a row that holds the tokens and rows it counts."""
    mask, ranks = numbers(case["mask"]), case.get("dp_size", 1)
    counts = lengths(mask)
    others = [case["batch_num_tokens"] - counts.sum()] if "batch_num_tokens" in case else []
    others += [1] * (case["global_batch_size"] - int((counts > 0).sum())) if "global_batch_size" in case else []
    batch = np.array([*counts, *others], dtype=np.int64)
    scale = case.get("loss_scale_factor")
    weights = row_weights(batch, mode=case["mode"], constant=scale)[: len(mask)]
    loss = float((weights * (numbers(case["losses"]) * mask).sum(1)).sum()) * ranks
    tolerance = row_mean_tolerance("verl", case["mode"])
    assert_golden(loss, case["loss"], case["wrong"], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", BY_HAND["aggregation"], ids=lambda case: case["name"])
def test_aggregation_by_hand(case: dict[str, Any]):
    counts = np.array([len(row) for row in case["rows"]])
    weights = row_weights(counts, mode=case["mode"], constant=case["constant"])
    loss = sum(weight * sum(row) for weight, row in zip(weights, case["rows"], strict=True))
    assert_golden(loss, case["loss"], case["wrong"], rtol=0, atol=BY_HAND["atol"])


@pytest.mark.parametrize("case", load("verl_kl_penalty")["cases"], ids=lambda case: case["name"])
def test_kl_equals_verl(case: dict[str, Any]):
    logprobs = tensor(case["logprobs"]).requires_grad_()
    mask = torch.ones_like(logprobs, dtype=torch.bool)
    kl = token_kl(logprobs, tensor(case["ref_logprobs"]), mask, kl_type=case["kl_type"])
    kl.sum().backward()
    assert_golden(kl.detach(), case["kl"], case["wrong"], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(numbers(logprobs.grad), numbers(case["grad"]), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("case", BY_HAND["kl"], ids=lambda case: case["name"])
def test_kl_by_hand(case: dict[str, Any]):
    logprobs = tensor([case["difference"]])
    mask = torch.ones_like(logprobs, dtype=torch.bool)
    kl = token_kl(logprobs, torch.zeros_like(logprobs), mask, kl_type=case["kl_type"])
    assert_golden(kl[0], case["kl"], case["wrong"], rtol=0, atol=BY_HAND["atol"])


@pytest.mark.parametrize("case", load("verl_entropy_logprob")["cases"], ids=lambda case: case["name"])
def test_logprobs_and_entropies_equal_verl(case: dict[str, Any]):
    logits = tensor(case["logits"]).requires_grad_()
    token_ids = torch.tensor(case["token_ids"])
    found = token_logprobs(logits, token_ids, temperature=1.0)
    assert_golden(found.detach(), case["logprobs"], case["wrong"], rtol=1e-12, atol=1e-12)
    entropies = token_entropies(logits, temperature=1.0)
    np.testing.assert_allclose(numbers(entropies.detach()), numbers(case["token_entropy"]), rtol=1e-12, atol=1e-12)
    weights = torch.from_numpy(row_weights(lengths(case["mask"]), mode=case["mode"]))
    loss = (weights * (entropies * tensor(case["mask"])).sum(-1)).sum()
    loss.backward()
    assert float(loss.detach()) == pytest.approx(case["entropy_loss"], rel=4e-9)
    np.testing.assert_allclose(numbers(logits.grad), numbers(case["grad_logits"]), rtol=4e-9, atol=1e-10)
