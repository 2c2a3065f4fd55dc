"""Laws of the advantage estimators, on drawn batches."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from papo.advantages import (
    Advantage,
    DrGrpo,
    FilterAccuracy,
    FilterGroups,
    Grpo,
    Mult,
    Papo,
    PapoFullnorm,
    Prm,
    ReinforcePlusPlusBaseline,
    Rloo,
    Sum,
    group_normalize,
    leave_one_out,
    rank_normalize,
    zero_reason,
)
from papo.metrics import summarize
from papo.rollouts import ScoredRollouts
from tests.properties.strategies import rollouts

ALL: list[Advantage] = [
    Grpo(),
    Grpo(scale_rewards="batch"),
    Grpo(scale_rewards="none"),
    Papo(),
    Papo(std_ddof=0),
    Papo(normalization="rank", outcome_weight=0.5),
    Papo(scale_rewards="none", few_correct="scale"),
    PapoFullnorm(),
    DrGrpo(),
    Rloo(),
    Sum(),
    Prm(),
]
NORMALISED: list[Advantage] = [
    Grpo(advantage_eps=0.0),
    Papo(advantage_eps=0.0),
    Papo(normalization="rank"),
    PapoFullnorm(advantage_eps=0.0),
    Sum(advantage_eps=0.0),
    Mult(advantage_eps=0.0),
]
EVERY: list[Advantage] = [*ALL, Mult(), Papo(order_guard="clip"), Rloo(normalize_advantages=True),
                          ReinforcePlusPlusBaseline()]  # fmt: skip
"""Those too whose advantages do not sum to 0 in a group, or follow a shift of the rewards."""
every = st.sampled_from(EVERY)
estimators = st.sampled_from(ALL)
many = settings(max_examples=5 * (settings.default or settings()).max_examples // 2)
"""For laws that are drawn over all estimators at once."""
BINARY = st.sampled_from([0.0, 1.0])


def members(batch: ScoredRollouts) -> list[np.ndarray]:
    return [batch.group == group for group in np.unique(batch.group)]


def reorder(batch: ScoredRollouts, order: np.ndarray) -> ScoredRollouts:
    columns = {name: getattr(batch, name)[order] for name in ("group", "outcome", "correct", "process", "lengths")}
    return replace(batch, **columns)


@many
@given(estimator=every, batch=rollouts())
def test_advantages_are_finite(estimator: Advantage, batch: ScoredRollouts):
    """BUG-008: whatever is missing."""
    terms = estimator(batch)
    assert np.isfinite(terms.total).all()
    assert not np.signbit(terms.total[terms.total == 0]).any()


@many
@given(estimator=estimators, batch=rollouts())
def test_advantages_of_a_group_sum_to_zero(estimator: Advantage, batch: ScoredRollouts):
    total = estimator(batch).total
    for rows in members(batch):
        assert total[rows].sum() == pytest.approx(0.0, abs=1e-6 * (1 + np.abs(total[rows]).max()))


@many
@given(estimator=every, batch=rollouts(), data=st.data())
def test_the_order_of_rows_changes_no_bit(estimator: Advantage, batch: ScoredRollouts, data: st.DataObject):
    order = np.array(data.draw(st.permutations(range(len(batch.group)))))
    assert np.array_equal(estimator(reorder(batch, order)).total, estimator(batch).total[order])


@many
@given(estimator=every, batch=rollouts())
def test_the_names_of_groups_do_not_matter(estimator: Advantage, batch: ScoredRollouts):
    renamed = replace(batch, group=1000 - 7 * batch.group)
    assert np.array_equal(estimator(renamed).total, estimator(batch).total)


@many
@given(
    estimator=st.sampled_from([one for one in ALL if getattr(one, "scale_rewards", "group") != "batch"]),
    batch=rollouts(),
)
def test_groups_do_not_see_each_other(estimator: Advantage, batch: ScoredRollouts):
    """BUG-009."""
    total = estimator(batch).total
    for rows in members(batch):
        alone = reorder(batch, np.flatnonzero(rows))
        assert np.array_equal(estimator(alone).total, total[rows])


@many
@given(estimator=estimators, batch=rollouts(), shift=st.integers(-1000, 1000))
def test_shifting_all_rewards_changes_nothing(estimator: Advantage, batch: ScoredRollouts, shift: int):
    shifted = replace(batch, outcome=batch.outcome + shift)
    np.testing.assert_allclose(estimator(shifted).total, estimator(batch).total, rtol=1e-5, atol=1e-5)


@many
@given(estimator=st.sampled_from(NORMALISED), batch=rollouts(), factor=st.floats(0.1, 50))
def test_scaling_all_rewards_changes_nothing(estimator: Advantage, batch: ScoredRollouts, factor: float):
    scaled = replace(batch, outcome=batch.outcome * factor, process=batch.process * factor)
    np.testing.assert_allclose(estimator(scaled).total, estimator(batch).total, rtol=1e-6, atol=1e-6)


@many
@given(estimator=every, batch=rollouts(), reward=st.floats(-1e6, 1e6), score=st.floats(0, 10), correct=st.booleans())
def test_equal_rewards_give_exactly_zero(
    estimator: Advantage, batch: ScoredRollouts, reward: float, score: float, correct: bool
):
    """Any value, float32 ones included, and any number of rows."""
    count = len(batch.group)
    level = replace(
        batch, outcome=np.full(count, reward), process=np.full(count, score), correct=np.full(count, correct)
    )
    assert not estimator(level).total.any()


@many
@given(estimator=every, batch=rollouts())
def test_unscorable_rows_get_zero_and_may_as_well_be_absent(estimator: Advantage, batch: ScoredRollouts):
    total = estimator(batch).total
    assert not total[~batch.scorable].any()
    present = np.flatnonzero(batch.scorable)
    assert np.array_equal(estimator(reorder(batch, present)).total, total[present])


@given(batch=rollouts(), ddof=st.sampled_from([0, 1]), eps=st.sampled_from([0.0, 1e-6, 1e-4]))
def test_papo_without_process_weight_is_grpo_bit_for_bit(batch: ScoredRollouts, ddof: int, eps: float):
    papo = Papo(lambda_process=0.0, std_ddof=ddof, advantage_eps=eps)(batch)
    grpo = Grpo(std_ddof=ddof, advantage_eps=eps)(batch)
    assert papo.total.tobytes() == grpo.total.tobytes()
    assert papo.outcome.tobytes() == grpo.outcome.tobytes()
    assert papo.process.tobytes() == grpo.process.tobytes()


@given(batch=rollouts(), data=st.data())
def test_papo_wrong_rows_never_depend_on_a_process_score(batch: ScoredRollouts, data: st.DataObject):
    count = len(batch.group)
    other = np.array(data.draw(st.lists(st.floats(0, 1) | st.just(float("nan")), min_size=count, max_size=count)))
    before, after = Papo()(batch), Papo()(replace(batch, process=other))
    wrong = ~batch.correct
    assert np.array_equal(before.total[wrong], after.total[wrong])
    assert np.array_equal(before.total[wrong], before.outcome[wrong])
    on_wrong_only = Papo()(replace(batch, process=np.where(wrong, other, batch.process)))
    assert np.array_equal(on_wrong_only.total, before.total)


@given(batch=rollouts())
def test_papo_process_parts_of_a_group_sum_to_zero(batch: ScoredRollouts):
    terms = Papo()(batch)
    for rows in members(batch):
        assert terms.process[rows].sum() == pytest.approx(0.0, abs=1e-9 * (1 + np.abs(terms.process).max()))
        assert not terms.process[rows & ~terms.process_active].any()


@given(batch=rollouts(), factor=st.floats(0.1, 10), shift=st.floats(-5, 5))
def test_papo_only_compares_process_scores(batch: ScoredRollouts, factor: float, shift: float):
    """A_proc of a·r + b is A_proc of r, for a > 0."""
    estimator = Papo(advantage_eps=0.0)
    rescaled = replace(batch, process=batch.process * factor + shift)
    np.testing.assert_allclose(estimator(rescaled).process, estimator(batch).process, rtol=1e-6, atol=1e-6)


@given(batch=rollouts(), weight=st.floats(0, 4))
def test_papo_is_linear_in_its_weight(batch: ScoredRollouts, weight: float):
    unit, weighted = Papo()(batch), Papo(lambda_process=weight)(batch)
    np.testing.assert_allclose(weighted.total, unit.outcome + weight * unit.process, rtol=1e-12, atol=1e-12)
    assert np.array_equal(weighted.process_active, unit.process_active)


@given(batch=rollouts(outcomes=BINARY, holes=False))
def test_papo_keeps_the_order_of_right_and_wrong_up_to_eight(batch: ScoredRollouts):
    """λ = 1 and G ≤ 8 (algorithms §2.8)."""
    honest = replace(batch, correct=batch.outcome == 1)
    summary = summarize(honest, Papo()(honest), truncated=np.zeros(len(batch.group), dtype=np.bool_))
    assert summary.order_violations == 0


@given(batch=rollouts(holes=False))
def test_normalised_values_have_mean_zero_and_deviation_one(batch: ScoredRollouts):
    for ddof in (0, 1):
        normalised = group_normalize(batch.outcome, batch.group, ddof=ddof, eps=0.0)
        for rows in members(batch):
            if np.ptp(batch.outcome[rows]) > 0:
                assert normalised[rows].mean() == pytest.approx(0.0, abs=1e-9)
                assert normalised[rows].std(ddof=ddof) == pytest.approx(1.0)


@given(batch=rollouts(holes=False), tiny=st.floats(1e-300, 1e-150))
def test_a_tiny_spread_is_still_a_spread(batch: ScoredRollouts, tiny: float):
    """Squares of such deviations are 0 in floating point; with eps = 0 that must not divide by zero."""
    assume(any(np.ptp(batch.outcome[rows]) > 0 for rows in members(batch)))
    small = group_normalize(batch.outcome * tiny, batch.group, eps=0.0)
    np.testing.assert_allclose(small, group_normalize(batch.outcome, batch.group, eps=0.0), rtol=1e-6, atol=1e-9)


@many
@given(estimator=every, batch=rollouts())
def test_every_zero_has_a_reason_and_nothing_else_has(estimator: Advantage, batch: ScoredRollouts):
    terms = estimator(batch)
    reasons = zero_reason(batch, terms)
    assert [reason is not None for reason in reasons] == (terms.total == 0.0).tolist()
    assert [reason == "unscorable" for reason in reasons] == (~batch.scorable).tolist()


@given(batch=rollouts(), factor=st.floats(0.1, 3), data=st.data())
def test_ranks_only_see_the_order(batch: ScoredRollouts, factor: float, data: st.DataObject):
    """Any increasing map of the rewards gives the same advantages; ties share one."""
    bent = replace(batch, outcome=np.sign(batch.outcome) * np.abs(batch.outcome) ** factor)
    assume(len(np.unique(bent.outcome)) == len(np.unique(batch.outcome)))
    assert np.array_equal(rank_normalize(bent.outcome, batch.group), rank_normalize(batch.outcome, batch.group))
    for rows in members(batch):
        same = batch.outcome[rows][:, None] == batch.outcome[rows][None, :]
        ranked = rank_normalize(batch.outcome, batch.group)[rows]
        assert not (same & (ranked[:, None] != ranked[None, :])).any()


@given(batch=rollouts(outcomes=BINARY, holes=False))
def test_ranks_of_two_values_are_their_z_score(batch: ScoredRollouts):
    np.testing.assert_allclose(
        rank_normalize(batch.outcome, batch.group), group_normalize(batch.outcome, batch.group, eps=0.0), atol=1e-12
    )


@given(batch=rollouts(holes=False))
def test_leave_one_out_is_dr_grpo_times_n_over_n_minus_one(batch: ScoredRollouts):
    found = leave_one_out(batch.outcome, batch.group)
    for rows in members(batch):
        count = rows.sum()
        if count > 1:
            expected = DrGrpo()(batch).total[rows] * count / (count - 1)
            np.testing.assert_allclose(found[rows], expected, rtol=1e-9, atol=1e-9)


@given(batch=rollouts(holes=False), row=st.integers(0, 100), reward=st.integers(-50, 50))
def test_leave_one_out_baseline_does_not_see_its_own_row(batch: ScoredRollouts, row: int, reward: int):
    """BUG-091: another reward of a row moves its advantage by as much."""
    at = row % len(batch.group)
    assume((batch.group == batch.group[at]).sum() > 1)
    changed = batch.outcome.copy()
    changed[at] += reward
    before, after = (leave_one_out(values, batch.group)[at] for values in (batch.outcome, changed))
    assert after - before == pytest.approx(reward, abs=1e-9)


@given(batch=rollouts(outcomes=BINARY, holes=False), weight=st.floats(0, 4), alpha=st.sampled_from([0.5, 1.0]))
def test_the_order_guard_keeps_right_above_wrong(batch: ScoredRollouts, weight: float, alpha: float):
    """Whatever the size of the group and the weight."""
    honest = replace(batch, correct=batch.outcome == 1)
    guarded = Papo(lambda_process=weight, outcome_weight=alpha, order_guard="clip")
    terms, plain = guarded(honest), replace(guarded, order_guard="none")(honest)
    assert summarize(honest, terms, truncated=np.zeros(len(batch.group), dtype=np.bool_)).order_violations == 0
    assert (terms.total >= plain.total).all()
    assert np.array_equal(terms.total[~honest.correct], plain.total[~honest.correct])


@given(batch=rollouts(), alpha=st.floats(0, 3), weight=st.floats(0, 3))
def test_papo_weighs_its_two_parts_apart(batch: ScoredRollouts, alpha: float, weight: float):
    both = Papo(outcome_weight=alpha, lambda_process=weight)(batch)
    unit = Papo()(batch)
    np.testing.assert_allclose(both.outcome, alpha * unit.outcome, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(both.process, weight * unit.process, rtol=1e-12, atol=1e-12)


@given(batch=rollouts())
def test_few_correct_rows_weigh_in_proportion(batch: ScoredRollouts):
    """λ·|C|/G with C the right and scored rows, G those with a reward."""
    plain, scaled = Papo()(batch), Papo(few_correct="scale")(batch)
    for rows in members(batch):
        chosen = rows & batch.correct & batch.scorable & ~np.isnan(batch.process)
        share = chosen.sum() / max(1, (rows & batch.scorable).sum())
        np.testing.assert_allclose(scaled.process[rows], share * plain.process[rows], rtol=1e-12, atol=1e-12)


@many
@given(estimator=every, batch=rollouts(), metric=st.sampled_from(["acc", "score", "advantage"]))
def test_filters_keep_whole_groups_and_what_they_drop_has_nothing_to_tell(
    estimator: Advantage, batch: ScoredRollouts, metric: Any
):
    terms = estimator(batch)
    kept = FilterGroups(metric=metric).keeps(batch, terms)
    for rows in members(batch):
        assert kept[rows].all() or not kept[rows].any()
    if metric == "advantage":
        assert not terms.total[~kept].any()


@given(batch=rollouts(), low=st.floats(0, 0.5), high=st.floats(0.5, 1))
def test_the_accuracy_filter_keeps_shares_within_its_bounds(batch: ScoredRollouts, low: float, high: float):
    kept = FilterAccuracy(accuracy_lower_bound=low, accuracy_upper_bound=high).keeps(batch)
    for rows in members(batch):
        known = rows & batch.scorable
        share = batch.correct[known].mean() if known.any() else -1.0
        assert (
            kept[rows].all() == (low - 1e-9 <= share <= high + 1e-9)
            or abs(share - low) < 1e-9
            or abs(share - high) < 1e-9
        )
