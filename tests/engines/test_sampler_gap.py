"""Sampler against trainer in an update: measured, weighed (TIS), and bypassed."""

import math

import polars as pl
import pytest

from papo.losses import RolloutCorrection
from tests.engines.test_update import CREDIT, Batch, algorithm, batch

__all__ = ["batch"]
DRIFT = 0.2


def drifted(batch: Batch) -> Batch:
    """Rollouts whose sampler was DRIFT nats less sure of each token than the trainer is."""
    return batch.rewrite(sampler_logprobs=pl.col("sampler_logprobs").list.eval(pl.element() - DRIFT))


def test_the_learners_own_rollouts_have_no_gap(batch: Batch) -> None:
    stats = batch.update(CREDIT).stats

    assert stats["sampler_logprob_gap_max"] < 1e-4
    assert abs(stats["sampler_k1"]) < 1e-5
    assert stats["sampler_effective_sample_size"] == pytest.approx(1.0, abs=1e-5)


def test_bug_051_a_drift_is_in_the_figures(batch: Batch) -> None:
    stats = drifted(batch).update(CREDIT).stats

    assert stats["sampler_logprob_gap_mean"] == pytest.approx(DRIFT, abs=1e-4)
    assert stats["sampler_k1"] == pytest.approx(-DRIFT, abs=1e-4)
    assert stats["sampler_k3"] == pytest.approx(math.exp(DRIFT) - 1 - DRIFT, abs=1e-4)
    # All weights are alike, so none of the sample is lost.
    assert stats["sampler_effective_sample_size"] == pytest.approx(1.0, abs=1e-4)


def test_tis_multiplies_the_loss_by_the_capped_ratio(batch: Batch) -> None:
    moved = drifted(batch)
    plain = moved.update(CREDIT).stats["grad_norm"]
    for cap, weight in ((2.0, math.exp(DRIFT)), (1.1, 1.1)):
        batch.bench.open()
        correction = RolloutCorrection(rollout_is="token", rollout_is_threshold=cap)
        weighed = moved.update(CREDIT, algorithm=algorithm(rollout_correction=correction)).stats["grad_norm"]
        assert weighed == pytest.approx(plain * weight, rel=1e-3)


def test_bypass_takes_the_samplers_log_probs_for_the_old_ones_and_still_sees_the_gap(batch: Batch) -> None:
    bypass = algorithm(rollout_correction=RolloutCorrection(bypass_mode=True))

    stats = drifted(batch).update(CREDIT, algorithm=bypass).stats

    assert stats["first_ratio_deviation"] == pytest.approx(math.exp(DRIFT) - 1, abs=1e-3)
    assert stats["sampler_logprob_gap_mean"] == pytest.approx(DRIFT, abs=1e-4)
    assert stats["optimizer_steps"] == 1
