"""Laws of losses, KL and aggregation, on drawn batches: what must not change value or gradient."""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from papo.advantages import Grpo
from papo.algorithm import Algorithm
from papo.losses import LossAggMode, LossInputs, Vanilla, merge_sums, policy_objective, row_weights, token_kl
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
]
algorithms = st.sampled_from(ALGORITHMS)
many = settings(max_examples=250)
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
    for kl_type in ("k1", "k2", "k3", "k3_reversed"):
        assert not token_kl(batch.logprobs, batch.logprobs, batch.mask, kl_type=kl_type).any()


@pytest.mark.parametrize("kl_type", ["k2", "k3", "k3_reversed"])
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
