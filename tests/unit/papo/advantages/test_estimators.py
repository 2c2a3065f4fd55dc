"""Edge cases of the estimators; their values are in tests/golden, their laws in tests/properties."""

from typing import Any

import numpy as np
import pytest

from papo.advantages import Advantage, Grpo, Papo, Prm, Sum, group_normalize, zero_reason
from papo.needs import Needs
from papo.rollouts import ScoredRollouts

NAN = float("nan")
ALL: list[Advantage] = [Grpo(), Grpo(scale_rewards="batch"), Grpo(scale_rewards="none"), Papo(), Sum(), Prm()]


def scored(outcome: list[float], *, process: list[float] | None = None, group: list[int] | None = None,
           correct: list[bool] | None = None) -> ScoredRollouts:  # fmt: skip
    rewards = np.array(outcome, dtype=np.float64)
    return ScoredRollouts(
        group=np.array(group or [0] * len(outcome)),
        outcome=rewards,
        correct=rewards == 1 if correct is None else np.array(correct),
        process=np.full(len(outcome), NAN) if process is None else np.array(process, dtype=np.float64),
        lengths=np.full(len(outcome), 3),
    )


@pytest.mark.parametrize("estimator", ALL)
def test_equal_rewards_give_exactly_zero(estimator: Advantage):
    """Eight float32 rewards of 0.7 are equal, though their mean in floating point need not be one of them."""
    value = float(np.float32(0.7))
    terms = estimator(scored([value] * 8, process=[0.1 + 0.2] * 8, correct=[True] * 8))
    assert terms.total.tolist() == [0.0] * 8
    assert not terms.process_active.any()


@pytest.mark.parametrize("estimator", ALL)
def test_group_of_one_gets_zero(estimator: Advantage):
    """BUG-008: alone from the start, or by its peers being unscorable; never NaN."""
    assert estimator(scored([1.0], process=[0.5])).total.tolist() == [0.0]
    shrunk = scored([1.0, NAN, NAN, 1.0, 0.0], process=[0.5, 0.1, 0.2, 0.3, 0.4], group=[0, 0, 0, 1, 1])
    assert estimator(shrunk).total[:3].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("estimator", ALL)
def test_unscorable_rows_change_nothing_for_the_others(estimator: Advantage):
    without = estimator(scored([1, 0, 0, 1], process=[1, 0.5, 0, 0.25])).total
    with_one = estimator(scored([1, NAN, 0, 0, 1], process=[1, 0.9, 0.5, 0, 0.25])).total
    assert with_one[1] == 0.0
    assert with_one[[0, 2, 3, 4]].tolist() == without.tolist()


def test_the_deviation_of_the_batch_is_that_of_the_kept_rows():
    values, group = np.array([1.0, 3.0, 5.0, 9.0, 100.0]), np.array([0, 0, 1, 1, 1])
    kept = np.array([True, True, True, True, False])
    found = group_normalize(values, group, where=kept, eps=0.0, scale="batch")
    assert found.tolist() == pytest.approx([*(np.array([-1.0, 1.0, -2.0, 2.0]) / np.std(values[:4], ddof=1)), 0.0])


def test_groups_are_normalised_apart_however_rows_are_ordered():
    """BUG-009."""
    mixed = Grpo()(scored([1, 0, 1, 0, 0, 0, 1, 1], group=[0, 1, 0, 1, 0, 1, 0, 1])).total
    assert mixed[::2].tolist() == Grpo()(scored([1, 1, 0, 1])).total.tolist()
    assert mixed[1::2].tolist() == Grpo()(scored([0, 0, 0, 1])).total.tolist()
    assert mixed[::2].sum() == pytest.approx(0.0, abs=1e-12)


def test_the_correct_set_comes_from_the_unshaped_outcome():
    """A length penalty makes an all-correct group unequal; C is still all of it."""
    terms = Papo()(scored([1.0, 0.9, 1.0, 0.9], process=[1, 0, 0, 1], correct=[True] * 4))
    assert terms.process_active.all()
    assert terms.outcome[0] > 0 > terms.outcome[1]


def test_a_failed_score_leaves_the_correct_set_and_gets_no_process_part():
    terms = Papo()(scored([1, 1, 1, 0], process=[1.0, NAN, 0.0, NAN]))
    assert terms.process[[0, 2]].tolist() == pytest.approx([np.sqrt(0.5), -np.sqrt(0.5)], rel=1e-5)
    assert terms.process[1] == 0.0
    assert terms.process_active.tolist() == [True, False, True, False]


def test_fewer_than_min_correct_scored_rows_give_no_process_part():
    three_right = scored([1, 1, 1, 0], process=[1.0, 0.5, 0.0, NAN])
    assert Papo(min_correct=3)(three_right).process_active.sum() == 3
    assert not Papo(min_correct=4)(three_right).process_active.any()
    assert not Papo()(scored([1, 0, 0, 0], process=[1.0, 0.0, 0.5, 0.0])).process_active.any()


def test_a_row_at_the_mean_is_active_though_its_part_is_zero():
    terms = Papo()(scored([1, 1, 1, 0], process=[1.0, 0.5, 0.0, NAN]))
    assert terms.process[1] == 0.0
    assert terms.process_active[1]


def test_sum_lets_a_large_process_score_outrank_a_right_answer():
    terms = Sum()(scored([1, 0], process=[2.0, 5.0]))
    assert terms.total[0] < 0 < terms.total[1]


def test_prm_ignores_the_outcome():
    assert (
        Prm()(scored([1, 0], process=[0.0, 1.0])).total.tolist()
        == Prm()(scored([0, 1], process=[0.0, 1.0])).total.tolist()
    )


def test_needs_are_declared():
    assert [estimator.needs for estimator in (Grpo(), Papo(), Sum(), Prm())] == [Needs()] + [
        Needs(process_scores=True)
    ] * 3


def test_reasons_for_zero():
    rollouts = scored(
        [NAN, 1, 1, 1, 1, 0, 0, 0.5], group=[0, 0, 1, 1, 2, 2, 3, 3], correct=[False] + [True] * 4 + [False] * 3
    )
    assert zero_reason(rollouts, Grpo()(rollouts)) == [
        "unscorable", "group_of_one", "equal_rewards", "equal_rewards", None, None, None, None]  # fmt: skip
    level = scored([1, 1, 1, 1], process=[1.0, 0.5, 0.0, NAN])
    assert zero_reason(level, Papo()(level)) == [None, "at_group_mean", None, "equal_rewards"]
    assert zero_reason(level, Papo(lambda_process=0.0)(level)) == ["equal_rewards"] * 4


@pytest.mark.parametrize(
    ("build", "names"),
    [
        (lambda: Papo(lambda_process=-0.1), "lambda_process is -0.1"),
        (lambda: Papo(lambda_process=NAN), "lambda_process is nan"),
        (lambda: Papo(min_correct=1), "min_correct is 1"),
        (lambda: Grpo(std_ddof=2), "std_ddof is 2"),
        (lambda: Sum(advantage_eps=-1e-6), "advantage_eps is -1e-06"),
        (lambda: Prm(advantage_eps=float("inf")), "advantage_eps is inf"),
    ],
)
def test_settings_without_meaning_are_refused(build: Any, names: str):
    with pytest.raises(ValueError, match=names):
        build()
