"""Laws of losses, KL and aggregation, on drawn batches: what must not change value or gradient."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from papo.advantages import Grpo
from papo.algorithm import Algorithm
from papo.losses import (
    Cispo,
    Gspo,
    GspoToken,
    LossAggMode,
    LossInputs,
    RolloutCorrection,
    Vanilla,
    corrections,
    effective_sample_size,
    full_kl,
    merge_sums,
    policy_objective,
    row_weights,
    token_kl,
    value_objective,
)
from papo.losses.kl import KlType
from tests.properties.strategies import Batch, batches

BASE = Algorithm(advantage=Grpo())
ALGORITHMS = [
    BASE,
    replace(BASE, loss_agg_mode="seq-mean-token-mean", policy_loss=Vanilla(clip_ratio_high=0.28)),
    replace(BASE, loss_agg_mode="seq-mean-token-sum", policy_loss=Vanilla(clip_ratio_c=3.0)),
    replace(BASE, loss_agg_mode="seq-mean-token-sum-norm", loss_norm_constant=16),
    replace(BASE, use_kl_loss=True, kl_loss_coef=0.1),
    replace(BASE, use_kl_loss=True, kl_loss_coef=0.1, kl_loss_type="k2", kl_on_zero_advantage=False),
    replace(BASE, log_ratio_clamp=None, use_kl_loss=True, kl_clamp=None, kl_value_clamp=None),
    replace(BASE, loss_agg_mode="seq-mean-token-mean", policy_loss=Gspo(clip_ratio_low=0.1, clip_ratio_high=0.1)),
    replace(BASE, loss_agg_mode="seq-mean-token-mean", policy_loss=GspoToken(sequence_ratio_norm="sum")),
    replace(BASE, policy_loss=Cispo(cispo_ratio_min=0.5, cispo_ratio_max=1.5)),
    replace(BASE, policy_loss=Vanilla(importance_sampling_level="sequence", delta=1.5)),
    replace(BASE, use_kl_loss=True, kl_loss_coef=0.1, kl_loss_type="k3+", kl_level="sequence"),
    replace(BASE, use_kl_loss=True, kl_loss_coef=0.1, kl_loss_type="abs", use_bias_correction_kl=True),
    replace(BASE, rollout_correction=RolloutCorrection(rollout_is="token", rollout_is_threshold=1.01)),
    replace(BASE, rollout_correction=RolloutCorrection(rollout_is="sequence", rollout_is_mode="mask")),
]
algorithms = st.sampled_from(ALGORITHMS)
many = settings(max_examples=5 * (settings.default or settings()).max_examples // 2)
"""For laws that are drawn over all algorithms at once."""


def assert_equal(found: object, expected: object) -> None:
    """Equal up to the rounding of float64 sums taken in another order."""
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def weights_of(algorithm: Algorithm, mask: Tensor) -> Tensor:
    lengths = mask.sum(-1).numpy()
    return torch.from_numpy(row_weights(lengths, mode=algorithm.loss_agg_mode, constant=algorithm.loss_norm_constant))


def run(
    algorithm: Algorithm, batch: Batch, *, weights: Tensor | None = None, rows: Sequence[int] | None = None
) -> tuple[Tensor, Tensor, dict[str, float]]:
    """Loss, gradient and sums of a batch, or of some of its rows under the whole batch's weights."""
    all_weights = weights_of(algorithm, batch.mask) if weights is None else weights
    chosen = slice(None) if rows is None else list(rows)
    logprobs = batch.logprobs[chosen].clone().requires_grad_()
    objective = policy_objective(
        algorithm,
        LossInputs(
            logprobs=logprobs,
            old_logprobs=batch.old_logprobs[chosen],
            ref_logprobs=batch.ref_logprobs[chosen],
            sampler_logprobs=batch.sampler_logprobs[chosen],
            advantages=batch.advantages[chosen],
            completion_mask=batch.mask[chosen],
            row_weights=all_weights[chosen],
        ),
    )
    objective.loss.backward()
    assert logprobs.grad is not None
    return objective.loss.detach(), logprobs.grad, {name: float(part) for name, part in objective.sums.items()}


@many
@given(algorithm=algorithms, batch=batches(), poison=st.sampled_from([10.0, float("nan"), float("inf"), float("-inf")]))
def test_what_is_masked_changes_neither_loss_nor_gradient(algorithm: Algorithm, poison: float, batch: Batch):
    """BUG-015, for the losses there are: masked advantages and log-probs of every kind, all at once."""
    poisoned = Batch(
        **{
            field.name: batch.mask if field.name == "mask" else getattr(batch, field.name).where(batch.mask, poison)
            for field in fields(batch)
        }
    )
    loss, gradient, sums = run(algorithm, batch)
    other_loss, other_gradient, other_sums = run(algorithm, poisoned)
    assert torch.equal(loss, other_loss)
    assert torch.equal(gradient, other_gradient)
    assert sums == other_sums
    assert not gradient[~batch.mask].any()


@many
@given(
    algorithm=algorithms, batch=batches(), columns=st.integers(1, 7), filler=st.sampled_from([0.0, -5.0, float("nan")])
)
def test_padding_changes_nothing(algorithm: Algorithm, batch: Batch, columns: int, filler: float):
    """BUG-003: seven all-pad columns on the right."""

    def padded(name: str) -> Tensor:
        tensor: Tensor = getattr(batch, name)
        extra = torch.full((len(tensor), columns), 0 if name == "mask" else filler, dtype=tensor.dtype)
        return torch.cat([tensor, extra], dim=1)

    wider = Batch(**{field.name: padded(field.name) for field in fields(batch)})
    loss, gradient, _ = run(algorithm, batch)
    wider_loss, wider_gradient, _ = run(algorithm, wider)
    assert_equal(wider_loss, loss)
    assert_equal(wider_gradient[:, : gradient.shape[1]], gradient)
    assert not wider_gradient[:, gradient.shape[1] :].any()


@many
@given(algorithm=algorithms, batch=batches(), size=st.integers(1, 6))
def test_micro_batches_add_up_to_the_batch(algorithm: Algorithm, batch: Batch, size: int):
    """BUG-003 and the promise that packing, micro-batches and ranks do not change the gradient."""
    loss, gradient, sums = run(algorithm, batch)
    weights = weights_of(algorithm, batch.mask)
    parts = [
        run(algorithm, batch, weights=weights, rows=range(start, min(start + size, len(batch.mask))))
        for start in range(0, len(batch.mask), size)
    ]
    assert_equal(sum(part[0] for part in parts), loss)
    assert_equal(torch.cat([part[1] for part in parts]), gradient)
    assert merge_sums(part[2] for part in parts) == pytest.approx(sums, rel=1e-12, abs=1e-12)


@many
@given(algorithm=algorithms, batch=batches(), data=st.data())
def test_the_order_of_rows_does_not_matter(algorithm: Algorithm, batch: Batch, data: st.DataObject):
    order = data.draw(st.permutations(range(len(batch.mask))))
    loss, gradient, _ = run(algorithm, batch)
    shuffled = Batch(**{field.name: getattr(batch, field.name)[list(order)] for field in fields(batch)})
    other_loss, other_gradient, _ = run(algorithm, shuffled)
    assert_equal(other_loss, loss)
    assert_equal(other_gradient, gradient[list(order)])


@many
@given(algorithm=algorithms, batch=batches(min_tokens=1))
def test_a_row_masked_as_truncated_may_as_well_be_absent(algorithm: Algorithm, batch: Batch):
    """BUG-001: loss and gradient equal those of the other rows alone."""
    cut = replace(batch, mask=torch.cat([batch.mask[:1], torch.zeros_like(batch.mask[1:])]))
    alone = Batch(**{field.name: getattr(batch, field.name)[:1] for field in fields(batch)})
    loss, gradient, _ = run(algorithm, cut)
    alone_loss, alone_gradient, _ = run(algorithm, alone)
    assert_equal(loss, alone_loss)
    assert_equal(gradient[:1], alone_gradient)


@given(batch=batches(min_tokens=1))
def test_an_unchanged_policy_has_ratio_one_and_the_plain_policy_gradient(batch: Batch):
    """Ratio 1 and no clipping at the first pass; the gradient is −w·A on every training token."""
    fresh = replace(batch, logprobs=batch.old_logprobs)
    _, gradient, sums = run(BASE, fresh)
    assert sums["ratio_deviation_max"] == sums["clipped"] == sums["ppo_kl"] == 0.0
    expected = torch.where(batch.mask, -batch.advantages / batch.mask.sum(), 0.0)
    assert_equal(gradient, expected)


@given(batch=batches())
def test_equal_policies_have_no_kl(batch: Batch):
    for kl_type in get_args(KlType):
        assert not token_kl(batch.logprobs, batch.logprobs, batch.mask, kl_type=kl_type).any()


@pytest.mark.parametrize("kl_type", ["k2", "k3", "k3_reversed", "k3+", "abs"])
@given(batch=batches())
def test_kl_estimates_but_k1_are_never_negative(kl_type: KlType, batch: Batch):
    assert (token_kl(batch.logprobs, batch.ref_logprobs, batch.mask, kl_type=kl_type) >= 0).all()


@given(batch=batches(min_tokens=1), low=st.floats(0, 1), high=st.floats(0, 2))
def test_clipping_is_pessimistic_and_silences_clipped_tokens(batch: Batch, low: float, high: float):
    """The clipped loss is never below the plain one, and a clipped token has no gradient."""
    clip = replace(BASE, policy_loss=Vanilla(clip_ratio_low=low, clip_ratio_high=high))
    loss, gradient, sums = run(clip, batch)
    ratio = (batch.logprobs - batch.old_logprobs).exp()
    plain = -(ratio * batch.advantages)[batch.mask].mean()
    assert loss >= plain - 1e-9
    beyond = (ratio > 1 + high) & (batch.advantages > 0) | (ratio < 1 - low) & (batch.advantages < 0)
    assert not gradient[beyond & batch.mask].any()
    assert sums["clipped"] == (beyond & batch.mask).sum()


@given(batch=batches(min_tokens=1), ceiling=st.floats(1.5, 5))
def test_dual_clip_bounds_the_loss_of_bad_tokens(batch: Batch, ceiling: float):
    dual = Vanilla(clip_ratio_c=ceiling)
    inputs = LossInputs(
        logprobs=batch.logprobs,
        old_logprobs=batch.old_logprobs,
        advantages=batch.advantages,
        completion_mask=batch.mask,
        row_weights=weights_of(BASE, batch.mask),
    )
    losses = dual.token_losses(inputs).losses
    plain = Vanilla().token_losses(inputs).losses
    bad = batch.mask & (batch.advantages < 0)
    assert (losses[bad] <= -ceiling * batch.advantages[bad] + 1e-12).all()
    assert torch.equal(losses[~bad], plain[~bad])


@given(
    lengths=st.lists(st.integers(0, 50), max_size=12),
    mode=st.sampled_from(["token-mean", "seq-mean-token-mean", "seq-mean-token-sum"]),
)
def test_a_loss_of_one_everywhere(lengths: list[int], mode: LossAggMode):
    """Means of ones are 1; the sum rule gives the mean length. Any empty rows aside."""
    counts = np.array(lengths, dtype=np.int64)
    loss = float((row_weights(counts, mode=mode) * counts).sum())
    training = counts[counts > 0]
    expected = training.sum() / max(1, len(training)) if mode == "seq-mean-token-sum" else float(len(training) > 0)
    assert loss == pytest.approx(expected)


@given(batch=batches(min_tokens=1), factor=st.floats(0.1, 10))
def test_the_loss_is_linear_in_the_advantages(batch: Batch, factor: float):
    loss, gradient, _ = run(BASE, batch)
    scaled, scaled_gradient, _ = run(BASE, replace(batch, advantages=batch.advantages * factor))
    torch.testing.assert_close(scaled, loss * factor)
    torch.testing.assert_close(scaled_gradient, gradient * factor)


def exact_gradient(kl_type: KlType) -> tuple[Tensor, Tensor, Tensor]:
    """Expected gradient of an estimator over a five-way softmax, and those of both KL divergences (G14)."""
    torch.manual_seed(0)
    logits = torch.randn(5, dtype=torch.float64, requires_grad=True)
    reference = torch.randn(5, dtype=torch.float64).log_softmax(-1)
    logprobs = logits.log_softmax(-1)
    probabilities = logprobs.detach().exp()
    mask = torch.ones(1, 5, dtype=torch.bool)
    estimate = token_kl(logprobs[None], reference[None], mask, kl_type=kl_type, kl_clamp=None, kl_value_clamp=None)
    expected = torch.autograd.grad((probabilities * estimate[0]).sum(), logits, retain_graph=True)[0]
    reverse = torch.autograd.grad((logprobs.exp() * (logprobs - reference)).sum(), logits, retain_graph=True)[0]
    forward = torch.autograd.grad((reference.exp() * (reference - logprobs)).sum(), logits)[0]
    return expected, reverse, forward


def test_which_divergence_each_estimator_descends():
    """G14: as losses, k1 has no gradient, k2 that of KL(policy‖reference), k3 that of KL(reference‖policy)."""
    expected, reverse, forward = exact_gradient("k1")
    torch.testing.assert_close(expected, torch.zeros(5, dtype=torch.float64), rtol=0, atol=1e-12)
    expected, reverse, forward = exact_gradient("k2")
    assert_equal(expected, reverse)
    assert not torch.allclose(reverse, forward, atol=1e-3)
    expected, reverse, forward = exact_gradient("k3")
    assert_equal(expected, forward)
    expected, reverse, forward = exact_gradient("k1+")
    assert_equal(expected, reverse)
    expected, reverse, forward = exact_gradient("k3+")
    assert_equal(expected, reverse)
    expected, reverse, forward = exact_gradient("k3_reversed")
    assert not torch.allclose(expected, reverse, atol=1e-3)


@given(batch=batches(), width=st.floats(0, 0.5))
def test_gspo_is_gspo_token_for_one_advantage_a_row(batch: Batch, width: float):
    """In value, in gradient and in what is clipped (arXiv:2507.18071 §4.3)."""
    constant = replace(batch, advantages=batch.advantages[:, :1].expand_as(batch.advantages).clone())
    settings: dict[str, Any] = {"clip_ratio_low": width, "clip_ratio_high": width}
    base = replace(BASE, loss_agg_mode="seq-mean-token-mean")
    loss, gradient, sums = run(replace(base, policy_loss=Gspo(**settings)), constant)
    other_loss, other_gradient, other_sums = run(replace(base, policy_loss=GspoToken(**settings)), constant)
    torch.testing.assert_close(other_loss, loss, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(other_gradient, gradient, rtol=1e-9, atol=1e-9)
    assert other_sums["ratio_max"] == pytest.approx(sums["ratio_max"])


@given(batch=batches(), low=st.floats(0, 1), high=st.floats(0, 2))
def test_clipping_by_sequence_is_gspo(batch: Batch, low: float, high: float):
    bounds: dict[str, Any] = {"clip_ratio_low": low, "clip_ratio_high": high}
    vanilla = Vanilla(importance_sampling_level="sequence", **bounds)
    found, expected = (
        run(replace(BASE, policy_loss=vanilla), batch),
        run(replace(BASE, policy_loss=Gspo(**bounds)), batch),
    )
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


@many
@given(algorithm=algorithms, batch=batches(min_tokens=1))
def test_ratio_is_one_at_the_first_pass_for_every_loss(algorithm: Algorithm, batch: Batch):
    """Old log-probs frozen before the first step: nothing is clipped, and the gradient is the plain one."""
    plain = replace(algorithm, use_kl_loss=False, rollout_correction=RolloutCorrection())
    fresh = replace(batch, logprobs=batch.old_logprobs)
    _, gradient, sums = run(plain, fresh)
    assert sums["ratio_deviation_max"] == 0.0
    assert sums["clipped"] == sums["clipped_lower"] == 0.0
    if (
        not isinstance(algorithm.policy_loss, Gspo)
        and getattr(plain.policy_loss, "importance_sampling_level", "") != "sequence"
    ):
        expected = torch.where(batch.mask, -batch.advantages * weights_of(plain, batch.mask)[:, None], 0.0)
        assert_equal(gradient, expected)


@given(batch=batches(min_tokens=1))
def test_cispo_keeps_a_gradient_on_clipped_tokens(batch: Batch):
    capped = replace(BASE, policy_loss=Cispo(cispo_ratio_max=1.0))
    _, gradient, _ = run(capped, batch)
    ratio = (batch.logprobs - batch.old_logprobs).exp().clamp(max=1.0)
    expected = torch.where(batch.mask, -ratio * batch.advantages / batch.mask.sum(), 0.0)
    assert_equal(gradient, expected)


@given(batch=batches(min_tokens=1), bound=st.floats(1.3, 5))
def test_two_sided_clipping_bounds_what_a_bad_token_loses(batch: Batch, bound: float):
    loss, gradient, _ = run(replace(BASE, policy_loss=Vanilla(delta=bound)), batch)
    plain, plain_gradient, _ = run(BASE, batch)
    ratio = (batch.logprobs - batch.old_logprobs).exp()
    hit = batch.mask & (batch.advantages < 0) & (ratio > bound)
    assert not gradient[hit].any()
    assert torch.equal(gradient[~hit], plain_gradient[~hit])
    assert loss <= plain + 1e-12


@given(batch=batches(min_tokens=1), level=st.sampled_from(["token", "sequence", "geometric"]), cap=st.floats(0.5, 3))
def test_corrections_are_capped_and_one_where_sampler_and_trainer_agree(batch: Batch, level: Any, cap: float):
    """TIS only caps, IcePop only drops, and a weight is a function of the row alone."""
    truncate = RolloutCorrection(rollout_is=level, rollout_is_threshold=cap)
    made = corrections(truncate, batch.old_logprobs, batch.sampler_logprobs, batch.mask)
    assert torch.equal(made.weights, made.uncapped.clamp(max=cap))
    assert not made.weights[~batch.mask].any()
    assert torch.equal(made.kept, batch.mask)
    popped = corrections(
        replace(truncate, rollout_is_mode="mask"), batch.old_logprobs, batch.sampler_logprobs, batch.mask
    ).weights
    assert ((popped == 0) | (popped == made.uncapped)).all()
    assert (popped[made.uncapped > cap] == 0).all()
    same = corrections(truncate, batch.old_logprobs, batch.old_logprobs, batch.mask).uncapped
    assert torch.equal(same, batch.mask.double())


@given(batch=batches(min_tokens=1))
def test_effective_sample_size_is_between_one_token_and_all(batch: Batch):
    settings = RolloutCorrection(rollout_is="token", rollout_is_threshold=10.0)
    weights = corrections(settings, batch.logprobs, batch.old_logprobs, batch.mask).weights
    size = effective_sample_size(weights, batch.mask).item()
    assert 1 / batch.mask.sum().item() - 1e-9 <= size <= 1 + 1e-9
    assert effective_sample_size(batch.mask.double(), batch.mask).item() == pytest.approx(1.0)


@given(batch=batches(min_tokens=1), low=st.floats(0.1, 0.9), high=st.floats(1.1, 3))
def test_rejection_drops_whole_rows_by_their_mean(batch: Batch, low: float, high: float):
    settings = RolloutCorrection(rollout_rs="seq_mean_k1", rollout_rs_low=low, rollout_rs_high=high)
    kept = corrections(settings, batch.logprobs, batch.old_logprobs, batch.mask).kept
    for row in range(len(kept)):
        own = batch.mask[row]
        if own.any():
            ratio = (batch.logprobs - batch.old_logprobs)[row][own].mean().exp()
            assert bool(kept[row].any()) == bool(low <= ratio <= high)
            assert torch.equal(kept[row], own) or not kept[row].any()


@given(
    batch=batches(), cliprange=st.sampled_from([None, 0.1, 0.5]), poison=st.sampled_from([float("nan"), float("inf")])
)
def test_the_value_loss_is_a_sum_of_its_rows_and_blind_to_the_mask(batch: Batch, cliprange: Any, poison: float):
    """BUG-015; and clipping only raises it."""
    weights = weights_of(BASE, batch.mask)

    def loss(name: float, rows: Any = slice(None)) -> Tensor:
        values, old, returns = (
            tensor.where(batch.mask, name)[rows] for tensor in (batch.logprobs, batch.old_logprobs, batch.advantages)
        )
        mask = batch.mask[rows]
        return value_objective(values, old, returns, mask, weights[rows], cliprange_value=cliprange).loss

    assert torch.equal(loss(poison), loss(0.0))
    assert_equal(sum(loss(0.0, slice(row, row + 1)) for row in range(len(weights))), loss(0.0))
    plain = value_objective(
        batch.logprobs, batch.old_logprobs, batch.advantages, batch.mask, weights, cliprange_value=None
    ).loss
    assert loss(0.0) >= plain - 1e-12


@given(seed=st.integers(0, 10_000), temperature=st.sampled_from([0.5, 1.0, 2.0]))
def test_the_full_kl_is_what_k1_and_k3_estimate(seed: int, temperature: float):
    """Their exact expectation over a vocabulary of six; never negative, and 0 for equal policies."""
    generator = torch.Generator().manual_seed(seed)
    logits, reference = (torch.randn(2, 3, 6, dtype=torch.float64, generator=generator) for _ in range(2))
    exact = full_kl(logits, reference, temperature=temperature)
    policy, other = ((part / temperature).log_softmax(-1) for part in (logits, reference))
    for kl_type in ("k1", "k3"):
        mask = torch.ones(6, 6, dtype=torch.bool)
        estimates = token_kl(
            policy.reshape(6, 6), other.reshape(6, 6), mask, kl_type=kl_type, kl_clamp=None, kl_value_clamp=None
        )
        expected = (policy.exp().reshape(6, 6) * estimates).sum(-1).reshape(2, 3)
        torch.testing.assert_close(exact, expected, rtol=1e-9, atol=1e-9)
    assert (exact >= 0).all()
    assert full_kl(logits, logits, temperature=temperature).abs().max() < 1e-12


@given(batch=batches())
def test_a_straight_through_kl_has_the_value_of_one_and_the_gradient_of_the_other(batch: Batch):
    pairs: list[tuple[KlType, KlType]] = [("k1+", "k1"), ("k3+", "k3")]
    for name, base in pairs:
        logprobs = batch.logprobs.clone().requires_grad_()
        kl = token_kl(logprobs, batch.ref_logprobs, batch.mask, kl_type=name)
        assert_equal(kl.detach(), token_kl(batch.logprobs, batch.ref_logprobs, batch.mask, kl_type=base))
        kl.sum().backward()
        assert_equal(logprobs.grad, torch.where(batch.mask, batch.logprobs - batch.ref_logprobs, 0.0))
