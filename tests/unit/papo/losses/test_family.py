"""Edge cases of the rest of the losses; values are in tests/golden, laws in tests/properties."""

import math
from typing import Any

import pytest
import torch

from papo.losses import (
    AdaptiveKl,
    Cispo,
    FixedKl,
    Gspo,
    RolloutCorrection,
    Vanilla,
    corrections,
    effective_sample_size,
    explained_variance,
    full_kl,
    value_objective,
    within_kl_band,
)
from papo.losses.implicit_prm import ce_losses, completion_rewards, detached_dpo_losses, dpo_accuracy, kto_losses

DOUBLE = torch.float64


@pytest.mark.parametrize("length", [10, 2000])
def test_geometric_weights_do_not_shrink_with_length(length: int):
    """BUG-016: noise of N(0, 0.02) a token; the mean weight stays near 1, before the cap and after it."""
    torch.manual_seed(0)
    old = -torch.rand(64, length, dtype=DOUBLE) - 0.1
    sampler = old - 0.02 * torch.randn(64, length, dtype=DOUBLE)
    mask = torch.ones_like(old, dtype=torch.bool)
    for level in ("geometric", "token"):
        made = corrections(RolloutCorrection(rollout_is=level), old, sampler, mask)
        assert 0.9 < made.weights.mean() < 1.1
        assert 0.9 < made.uncapped.mean() < 1.1
        assert effective_sample_size(made.weights, mask) > 0.99
    summed = corrections(RolloutCorrection(rollout_is="sequence"), old, sampler, mask)
    assert length == 10 or effective_sample_size(summed.weights, mask) < 0.8


def test_weights_of_a_batch_can_have_mean_one():
    old = torch.tensor([[-1.0, -1.0], [-1.0, -1.0]], dtype=DOUBLE)
    sampler = torch.tensor([[-1.2, -0.9], [-1.1, float("nan")]], dtype=DOUBLE)
    mask = torch.tensor([[True, True], [True, False]])
    for level in ("token", "geometric"):
        settings = RolloutCorrection(rollout_is=level, rollout_is_batch_normalize=True)
        weights = corrections(settings, old, sampler, mask).weights
        mean = weights[mask].mean() if level == "token" else weights[:, 0].mean()
        assert mean.item() == pytest.approx(1.0)
    popped = RolloutCorrection(
        rollout_is="token", rollout_is_mode="mask", rollout_is_threshold_low=5.0, rollout_is_threshold=9.0,
        rollout_is_batch_normalize=True,
    )  # fmt: skip
    assert not corrections(popped, old, sampler, mask).weights.any()


def test_an_unknown_sampler_log_prob_weighs_one():
    old = torch.tensor([[-1.0, -2.0]])
    made = corrections(
        RolloutCorrection(rollout_is="token"), old, torch.tensor([[float("nan"), -2.5]]), torch.ones(1, 2).bool()
    )
    assert made.weights[0].tolist() == pytest.approx([1.0, math.exp(0.5)])


def test_icepop_drops_on_both_sides():
    old, sampler = torch.zeros(1, 3), -torch.tensor([[0.1, 1.0, -1.0]])
    settings = RolloutCorrection(
        rollout_is="token", rollout_is_mode="mask", rollout_is_threshold_low=0.5, rollout_is_threshold=2.0
    )
    found = corrections(settings, old, sampler, torch.ones(1, 3).bool()).weights[0]
    assert found.tolist() == pytest.approx([math.exp(0.1), 0.0, 0.0])


def test_explained_variance_is_one_for_a_critic_that_knows():
    returns = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
    mask = torch.tensor([[True, True], [True, False]])
    weights = torch.full((2,), 1 / 3)

    def explained(values: torch.Tensor) -> float | None:
        objective = value_objective(values, values, returns, mask, weights, cliprange_value=None)
        return explained_variance({name: float(part) for name, part in objective.sums.items()})

    assert explained(returns) == pytest.approx(1.0)
    assert explained(returns + 5.0) == pytest.approx(1.0)
    assert explained(torch.full_like(returns, 2.0)) == pytest.approx(0.0)
    assert explained(torch.tensor([[1.5, 2.0], [2.5, 9.0]])) == pytest.approx(0.75)
    flat = value_objective(returns, returns, torch.ones(2, 2), mask, weights)
    assert explained_variance({name: float(part) for name, part in flat.sums.items()}) is None
    empty = value_objective(returns, returns, returns, mask & False, weights)
    assert explained_variance({name: float(part) for name, part in empty.sums.items()}) is None


def test_rows_outside_a_band_of_the_full_kl_are_rejected():
    kl = torch.tensor([[0.1, 0.3], [0.9, 0.9], [0.0, 0.02], [5.0, 5.0]])
    mask = torch.tensor([[True, True], [True, True], [True, True], [False, False]])
    assert within_kl_band(kl, mask, low=0.05, high=0.5).tolist() == [True, False, False, True]


def test_the_full_kl_at_a_token_of_probability_zero():
    logits = torch.tensor([[[0.0, float("-inf")]]])
    reference = torch.tensor([[[0.0, 0.0]]])
    assert full_kl(logits, reference, temperature=1.0).item() == pytest.approx(math.log(2))


def test_implicit_prm_losses_at_the_start_have_a_gradient():
    """The PRM equals its reference before its first update: every reward is exactly 0."""
    logprobs = torch.full((2, 3), -1.0, requires_grad=True)
    mask = torch.ones(2, 3).bool()
    rewards = completion_rewards(logprobs, logprobs.detach(), mask)
    losses = ce_losses(rewards, torch.tensor([1.0, 0.0]))
    losses.sum().backward()
    assert losses.tolist() == pytest.approx([math.log(2)] * 2)
    assert logprobs.grad is not None
    assert logprobs.grad[:, 0].tolist() == pytest.approx([-0.025, 0.025])


def test_large_rewards_keep_their_gradient():
    rewards = torch.tensor([-500.0, 500.0], requires_grad=True)
    losses = ce_losses(rewards, torch.tensor([1.0, 0.0]))
    losses.sum().backward()
    assert losses.tolist() == [500.0, 500.0]
    assert rewards.grad is not None
    assert rewards.grad.tolist() == [-1.0, 1.0]


def test_kto_pulls_right_rows_up_and_wrong_rows_down():
    rewards = torch.tensor([0.5, 0.5], requires_grad=True)
    losses = kto_losses(rewards, torch.tensor([1.0, 0.0]), baseline=0.2, weight_right=1.0, weight_wrong=2.0)
    losses.sum().backward()
    assert losses.tolist() == pytest.approx([1 / (1 + math.exp(0.3)), 2 / (1 + math.exp(-0.3))])
    assert rewards.grad is not None
    assert rewards.grad[0] < 0 < rewards.grad[1]


def test_pairs_are_those_of_a_group():
    rewards, labels = torch.tensor([1.0, 0.0, 5.0, 9.0]), torch.tensor([1.0, 0.0, 1.0, 0.0])
    assert dpo_accuracy(rewards, labels, torch.tensor([0, 0, 1, 1])) == 0.5
    near = torch.tensor([1.0, 0.0, 5.0, 4.0])
    assert dpo_accuracy(near, labels, torch.tensor([0, 0, 1, 1])) == 1.0
    assert dpo_accuracy(near, labels, torch.zeros(4, dtype=torch.long)) == 0.75
    assert dpo_accuracy(rewards, labels, torch.tensor([0, 1, 2, 3])) == 0.5
    assert dpo_accuracy(rewards, labels, torch.zeros(4, dtype=torch.long)) == 0.5
    assert dpo_accuracy(rewards[:3], labels[:3], torch.zeros(3, dtype=torch.long)) == 1.0
    alone = detached_dpo_losses(torch.tensor([0.4]), torch.tensor([1.0]), torch.tensor([0]))
    assert alone.item() == pytest.approx(math.log1p(math.exp(-0.4)))


def test_the_kl_coefficient_moves_towards_its_target():
    adaptive = AdaptiveKl(target_kl=0.1, horizon=100)
    assert adaptive.next_coef(1.0, kl=0.2, steps=10) == pytest.approx(1.02)
    assert adaptive.next_coef(1.0, kl=0.0, steps=10) == pytest.approx(0.98)
    assert adaptive.next_coef(1.0, kl=0.11, steps=10) == pytest.approx(1.01)
    assert FixedKl().next_coef(0.3, kl=9.0, steps=10) == 0.3


@pytest.mark.parametrize(
    ("build", "names"),
    [
        (lambda: Vanilla(delta=1.1), "delta is 1.1"),
        (lambda: Gspo(clip_ratio_low=2.0), "clip_ratio_low is 2.0"),
        (lambda: Cispo(cispo_ratio_max=0.5), "cispo_ratio_max is 0.5"),
        (lambda: Cispo(cispo_ratio_min=1.5), "cispo_ratio_min is 1.5"),
        (lambda: AdaptiveKl(target_kl=0.0), "target_kl is 0.0"),
        (lambda: AdaptiveKl(horizon=0), "horizon is 0"),
        (lambda: RolloutCorrection(rollout_is_threshold_low=3.0), "rollout_is_threshold_low 3.0"),
        (lambda: RolloutCorrection(rollout_rs_low=3.0), "rollout_rs_low 3.0"),
        (lambda: RolloutCorrection(bypass_mode=True, rollout_is="token"), "bypass_mode"),
    ],
)
def test_settings_without_meaning_are_refused(build: Any, names: str):
    with pytest.raises(ValueError, match=names):
        build()
