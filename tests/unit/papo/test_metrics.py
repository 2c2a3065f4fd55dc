import numpy as np
import pytest

from papo.advantages import Grpo, Papo
from papo.metrics import summarize
from papo.rollouts import AdvantageTerms, ScoredRollouts

NAN = float("nan")


def rollouts(group: list[int], outcome: list[float], process: list[float] | None = None) -> ScoredRollouts:
    rewards = np.array(outcome, dtype=np.float64)
    return ScoredRollouts(
        group=np.array(group, dtype=np.int64),
        outcome=rewards,
        correct=rewards == 1,
        process=np.full(len(rewards), NAN) if process is None else np.array(process, dtype=np.float64),
        lengths=np.arange(1, len(rewards) + 1),
    )


def test_numbers_of_a_small_iteration():
    scored = rollouts([0, 0, 0, 0, 1, 1, 2, 2], [1, 1, 0, NAN, 1, 1, 0, 0], [1, 0, NAN, NAN, 1, 1, NAN, NAN])
    terms = Papo()(scored)
    summary = summarize(scored, terms, truncated=np.arange(8) >= 6)
    assert (summary.rollouts, summary.groups, summary.unscorable) == (8, 3, 1)
    assert summary.accuracy == summary.outcome_mean == pytest.approx(4 / 7)
    assert summary.process_mean == pytest.approx(0.75)
    assert summary.process_active_ratio == pytest.approx(1 / 3)
    assert (summary.all_correct_ratio, summary.all_wrong_ratio) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert summary.zero_variance_groups == pytest.approx(2 / 3)
    assert summary.zero_advantage_ratio == pytest.approx(4 / 7)
    assert summary.correct_advantage_max == terms.total.max()
    assert summary.correct_advantage_min == terms.total[[0, 1, 4, 5]].min()
    assert summary.wrong_advantage_min == terms.total[2]
    assert summary.pos_adv_ratio == pytest.approx((terms.total > 0).sum() / 7)
    assert summary.truncated_ratio == 0.25
    assert (summary.length_mean, summary.length_correct_mean, summary.length_wrong_mean) == (4.5, 3.5, 6.0)
    assert summary.order_violations == 0


def test_share_of_groups_without_signal_counts_groups_and_not_rows():
    """BUG-012 and BUG-031: 7 of 10 groups have equal rewards, and they are the small ones."""
    group = [g for g in range(10) for _ in range(2 if g < 7 else 8)]
    outcome = [float(g >= 7 and k == 0) for g in range(10) for k in range(2 if g < 7 else 8)]
    scored = rollouts(group, outcome)
    summary = summarize(scored, Grpo()(scored), truncated=np.zeros(len(group), dtype=np.bool_))
    assert summary.zero_variance_groups == 0.7
    assert summary.zero_advantage_ratio == pytest.approx(14 / 38)


def test_nothing_to_measure_is_none_and_not_zero():
    """BUG-066."""
    scored = rollouts([0, 0], [0, 0])
    summary = summarize(scored, Grpo()(scored), truncated=np.ones(2, dtype=np.bool_))
    assert summary.correct_advantage_mean is summary.length_correct_mean is summary.process_mean is None
    assert summary.truncated_ratio == 1.0
    empty = rollouts([], [])
    assert summarize(empty, Grpo()(empty), truncated=np.zeros(0, dtype=np.bool_)).accuracy is None


def test_order_violations_are_counted_within_groups():
    """Below the best wrong row, strictly, and of the same group."""
    scored = rollouts([0, 0, 0, 0, 0, 1, 1], [1, 1, 1, 0, 0, 1, 0])
    terms = AdvantageTerms(
        outcome=np.array([0.5, -1.0, -0.5, -0.5, -2.0, -3.0, -4.0]),
        process=np.zeros(7),
        process_active=np.zeros(7, dtype=np.bool_),
    )
    assert summarize(scored, terms, truncated=np.zeros(7, dtype=np.bool_)).order_violations == 1
