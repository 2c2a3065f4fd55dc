"""What the objective adds up; the losses themselves are in tests/golden, their laws in tests/properties."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from papo.advantages import Grpo
from papo.algorithm import Algorithm
from papo.losses import LossInputs, RolloutCorrection, Vanilla, merge_sums, policy_objective, row_weights, token_kl

PLAIN = Algorithm(advantage=Grpo())
WITH_KL = replace(PLAIN, use_kl_loss=True, kl_loss_coef=0.1)


def inputs(advantages: list[list[float]], *, mask: list[list[int]] | None = None, **extra: Tensor) -> LossInputs:
    credit = torch.tensor(advantages)
    kept = torch.ones_like(credit, dtype=torch.bool) if mask is None else torch.tensor(mask).bool()
    logprobs = torch.full_like(credit, -1.0).requires_grad_()
    weights = row_weights(kept.sum(-1).numpy(), mode="token-mean")
    return LossInputs(
        logprobs=logprobs,
        old_logprobs=logprobs.detach(),
        advantages=credit,
        completion_mask=kept,
        row_weights=torch.from_numpy(weights),
        **extra,
    )


def test_on_policy_loss_is_zero_and_its_gradient_is_not():
    """BUG-019: centred advantages at ratio 1; the loss says nothing about learning."""
    batch = inputs([[1.0, 1.0], [-1.0, -1.0]])
    objective = policy_objective(PLAIN, batch)
    objective.loss.backward()
    assert abs(objective.loss.item()) < 1e-6
    assert batch.logprobs.grad is not None
    torch.testing.assert_close(batch.logprobs.grad, torch.tensor([[-0.25, -0.25], [0.25, 0.25]]))
    assert objective.sums["ratio_deviation_max"] == 0.0
    assert objective.sums["ratio_max"] == 1.0


def test_a_fully_masked_batch_has_loss_zero_and_no_tokens():
    """BUG-001: the step can be reported as empty."""
    batch = inputs([[1.0, 2.0]], mask=[[0, 0]])
    objective = policy_objective(PLAIN, batch)
    objective.loss.backward()
    assert objective.loss.item() == 0.0
    assert batch.logprobs.grad is not None
    assert not batch.logprobs.grad.any()
    assert objective.sums["tokens"] == objective.sums["rows"] == 0.0


@pytest.mark.parametrize(("on_zero", "expected"), [(True, [0.1, 0.3]), (False, [0.1, 0.0])])
def test_kl_on_rows_without_signal_is_a_setting(on_zero: bool, expected: list[float]):
    """BUG-012: β = 0.1 and a row of advantage 0."""
    batch = inputs([[1.0], [0.0]], ref_logprobs=torch.tensor([[-2.0], [-4.0]]))
    algorithm = replace(WITH_KL, kl_loss_type="k1", kl_on_zero_advantage=on_zero)
    objective = policy_objective(algorithm, batch)
    plain = policy_objective(PLAIN, batch)
    assert (objective.loss - plain.loss).item() == pytest.approx(sum(expected) / 2)
    assert objective.sums["kl_loss"].item() == pytest.approx(sum(expected) / 0.1 / 2)


@pytest.mark.parametrize("clamps", [(20.0, 10.0), (20.0, None)])
def test_kl_of_a_drifted_policy_is_finite_and_counted(clamps: tuple[float, float | None]):
    """BUG-010: ref − policy = 100 at one token, 0 at the other."""
    batch = inputs([[1.0, 1.0]], ref_logprobs=torch.tensor([[99.0, -1.0]]))
    objective = policy_objective(replace(WITH_KL, kl_clamp=clamps[0], kl_value_clamp=clamps[1]), batch)
    objective.loss.backward()
    assert torch.isfinite(objective.loss)
    assert batch.logprobs.grad is not None
    assert torch.isfinite(batch.logprobs.grad).all()
    assert objective.sums["clamped_kl"] == 1.0
    kl = token_kl(batch.logprobs, torch.tensor([[99.0, -1.0]]), batch.completion_mask, kl_type="k3")
    assert kl[0, 1].item() == 0.0


def test_clamped_log_ratios_are_counted():
    batch = inputs([[1.0, 1.0, 1.0]])
    drifted = replace(batch, old_logprobs=torch.tensor([[-1.0, -31.0, 19.5]]))
    assert policy_objective(PLAIN, drifted).sums["clamped_log_ratios"] == 2.0
    assert policy_objective(replace(PLAIN, log_ratio_clamp=None), drifted).sums["clamped_log_ratios"] == 0.0
    assert torch.isfinite(policy_objective(PLAIN, drifted).loss)


def test_clip_and_dual_clip_are_counted_apart():
    batch = inputs([[1.0, -1.0, -1.0, 1.0]])
    ratios = torch.tensor([[2.0, 0.5, 9.0, 1.1]])
    drifted = replace(batch, old_logprobs=batch.old_logprobs - ratios.log())
    objective = policy_objective(replace(PLAIN, policy_loss=Vanilla(clip_ratio_c=3.0)), drifted)
    assert objective.sums["clipped"] == 2.0
    assert objective.sums["clipped_lower"] == 1.0
    assert objective.sums["ratio_max"].item() == pytest.approx(9.0)
    assert objective.sums["ppo_kl"].item() == pytest.approx(-ratios.log().sum().item())
    assert objective.loss.item() == pytest.approx((-1.2 + 0.8 + 3.0 - 1.1) / 4)


def test_the_largest_ratio_is_that_of_training_tokens():
    """A masked position counts as 1 in the loss, and not at all in the metric."""
    batch = inputs([[1.0, 1.0]], mask=[[1, 0]])
    lower = replace(batch, old_logprobs=torch.tensor([[-0.5, -0.5]]))
    assert policy_objective(PLAIN, lower).sums["ratio_max"].item() == pytest.approx(np.exp(-0.5))


def test_the_gap_to_the_sampler_is_in_probabilities():
    batch = inputs([[1.0, 1.0]], sampler_logprobs=torch.log(torch.tensor([[0.3, float("nan")]])))
    masked = replace(batch, completion_mask=torch.tensor([[True, False]]))
    sums = policy_objective(PLAIN, masked).sums
    assert sums["sampler_gap"].item() == sums["sampler_gap_max"].item() == pytest.approx(np.exp(-1) - 0.3)
    assert sums["sampler_tokens"] == 1.0


def test_corrections_weigh_the_policy_loss_and_are_summed_before_and_after_the_cap():
    """BUG-016: the sampler gave these tokens a half and a quarter of what the trainer gives them."""
    behind = torch.tensor([[-1.0, -1.0]]) - torch.tensor([[2.0, 4.0]]).log()
    batch = inputs([[1.0, 3.0]], sampler_logprobs=behind)
    corrected = replace(PLAIN, rollout_correction=RolloutCorrection(rollout_is="token", rollout_is_threshold=3.0))
    objective = policy_objective(corrected, batch)
    assert objective.loss.item() == pytest.approx(-(2.0 * 1.0 + 3.0 * 3.0) / 2)
    found = {name: objective.sums[name].item() for name in objective.sums if name.startswith("correction")}
    assert found == pytest.approx({"correction": 5.0, "correction_squared": 13.0, "correction_uncapped": 6.0})
    given = policy_objective(PLAIN, replace(batch, correction_weights=torch.tensor([[0.5, 0.0]])))
    assert given.loss.item() == pytest.approx(-0.25)
    with pytest.raises(ValueError, match="sampler_logprobs"):
        policy_objective(corrected, inputs([[1.0]]))


def test_sampler_against_trainer_in_nats():
    batch = inputs([[1.0, 1.0]], sampler_logprobs=torch.tensor([[-0.8, -1.0]]))
    sums = policy_objective(PLAIN, batch).sums
    assert sums["sampler_k1"].item() == pytest.approx(0.2)
    assert sums["sampler_k3"].item() == pytest.approx(np.exp(-0.2) + 0.2 - 1, abs=1e-7)


def test_an_entropy_bonus_lowers_the_loss():
    batch = inputs([[1.0, 1.0]], entropies=torch.tensor([[2.0, 4.0]]))
    plain, rewarded = (policy_objective(replace(PLAIN, entropy_coeff=c), batch) for c in (0.0, 0.01))
    assert (plain.loss - rewarded.loss).item() == pytest.approx(0.03)
    assert rewarded.sums["entropy"].item() == pytest.approx(3.0)


def test_a_missing_input_is_named():
    with pytest.raises(ValueError, match="ref_logprobs"):
        policy_objective(WITH_KL, inputs([[1.0]]))
    with pytest.raises(ValueError, match="entropies"):
        policy_objective(replace(PLAIN, entropy_coeff=0.01), inputs([[1.0]]))


def test_sums_merge_by_adding_and_extremes_by_max():
    merged = merge_sums([{"tokens": 3.0, "ratio_max": 1.5}, {"tokens": 4.0, "ratio_max": 1.2, "kl": 1.0}])
    assert merged == {"tokens": 7.0, "ratio_max": 1.5, "kl": 1.0}
    assert merge_sums([]) == {}
