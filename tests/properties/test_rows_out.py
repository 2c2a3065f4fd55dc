"""Who is inside a statistic, over every estimator: the rule of docs/algorithms/index.md (C-21, C-22)."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papo.advantages import (
    Advantage,
    DrGrpo,
    FilterGroups,
    Gae,
    Grpo,
    GrpoProcess,
    Mult,
    MultiReward,
    Papo,
    PapoFullnorm,
    Prime,
    Prm,
    Prpo,
    ReinforcePlusPlus,
    ReinforcePlusPlusBaseline,
    Rloo,
    Sum,
    zero_reason,
)
from papo.rollouts import AdvantageTerms, Ragged, ScoredRollouts
from papo.segmentation import Newlines
from tests.properties.strategies import joined, select, token_rollouts

GROUPWISE: list[Advantage] = [
    Grpo(),
    Grpo(scale_rewards="none", std_ddof=0),
    DrGrpo(),
    Rloo(),
    Papo(),
    Papo(normalization="rank", few_correct="scale", order_guard="clip"),
    PapoFullnorm(),
    Sum(),
    Mult(),
    Prm(),
    GrpoProcess(),
    GrpoProcess(process_return="min"),
    MultiReward(reward_weights=(1.0, 0.3)),
    Prime(),
    Prime(prime_form="grpo", advantage_eps=0.0),
]
"""Credit within a group: nothing of another group is looked at."""
SCALED: list[Advantage] = [
    Rloo(normalize_advantages=True),
    MultiReward(reward_weights=(0.7, 0.1), multi_objective_aggregation="normalize_then_sum"),
    MultiReward(reward_weights=(0.7, 0.1), multi_objective_aggregation="normalize_then_sum", advantage_eps=0.0),
]
"""Credit within a group, divided by the deviation of all credit in the batch."""
BY_REWARDS: list[Advantage] = [
    Grpo(scale_rewards="batch"),
    MultiReward(reward_weights=(1.0, 0.3), scale_rewards="batch"),
]
"""The same, divided by the deviation of the batch's rewards, which a lone row has as well."""
WHITENED: list[Advantage] = [
    ReinforcePlusPlusBaseline(),
    Prime(prime_impl="verl"),
    Prime(prime_impl="verl", prime_form="grpo"),
]
"""Centred at the batch's mean: a group of equal rewards stands where that is not."""
ALONE_TOO: list[Advantage] = [
    Gae(),
    ReinforcePlusPlus(),
    Prpo(segmenter=Newlines()),
    Prpo(prpo_norm="batch", prpo_outcome="center_plus_prm_mean"),
    Prime(prime_form="reinforce"),
    Prime(prime_form="reinforce", prime_impl="verl"),
]
"""No baseline of a group (PRPO: for its process part), so a row that is alone takes part as any other."""
EVERY = [*GROUPWISE, *SCALED, *BY_REWARDS, *WHITENED, *ALONE_TOO]
many = settings(max_examples=3 * (settings.default or settings()).max_examples)
"""For laws that are drawn over all estimators at once."""
LEVELS = st.sampled_from([0.7, 0.1 + 0.2, 0.1, 1 / 3, 1.0, 0.0, -0.3, 1e-300, 1e17])


def test_every_estimator_is_tried():
    assert {type(estimator) for estimator in EVERY} == set(get_args(Advantage))


def by_row(terms: AdvantageTerms, batch: ScoredRollouts) -> list[list[float]]:
    tokens = np.zeros(int(batch.lengths.sum())) if terms.tokens is None else terms.tokens.values
    whole = np.repeat(terms.total, batch.lengths) + tokens
    ends = np.cumsum(batch.lengths)
    return [[float(terms.total[row]), *whole[ends[row] - batch.lengths[row] : ends[row]]] for row in range(len(ends))]


def without(batch: ScoredRollouts, out: np.ndarray) -> ScoredRollouts:
    return select(batch, np.flatnonzero(~out))


@many
@given(estimator=st.sampled_from(EVERY), batch=token_rollouts())
def test_c_21_rows_without_a_reward_change_no_other_row(estimator: Advantage, batch: ScoredRollouts):
    terms = estimator(batch)
    assert terms.silent[~batch.scorable].all()
    known = without(batch, ~batch.scorable)
    found = [row for row, scorable in zip(by_row(terms, batch), batch.scorable, strict=True) if scorable]
    assert found == by_row(estimator(known), known)


@many
@given(estimator=st.sampled_from([*GROUPWISE, *SCALED, *WHITENED]), batch=token_rollouts())
def test_c_21_rows_that_are_alone_change_no_other_row(estimator: Advantage, batch: ScoredRollouts):
    """With the rows of their groups that have no reward."""
    sizes = np.array([(batch.scorable & (batch.group == own)).sum() for own in batch.group])
    alone = sizes < 2
    terms = estimator(batch)
    assert terms.silent[alone].all()
    reasons = np.array(zero_reason(batch, terms))
    assert set(reasons[alone & batch.scorable]) <= {"group_of_one"}
    others = without(batch, alone)
    if len(others.group):
        found = [row for row, out in zip(by_row(terms, batch), alone, strict=True) if not out]
        assert found == by_row(estimator(others), others)


@pytest.mark.parametrize("estimator", ALONE_TOO, ids=repr)
def test_without_a_baseline_a_row_that_is_alone_takes_part(estimator: Advantage):
    batch = ScoredRollouts(
        group=np.array([0, 1]),
        outcome=np.array([1.0, 0.0]),
        correct=np.array([True, False]),
        process=np.array([0.5, 0.5]),
        lengths=np.array([2, 2]),
        step_ends=joined([np.array([1.0]), np.array([1.0])]),
        step_scores=joined([np.array([0.9]), np.array([0.2])]),
        token_rewards=joined([np.array([0.1, 0.2]), np.array([0.0, 0.3])]),
        token_values=joined([np.array([0.4, 0.6]), np.array([0.1, 0.3])]),
    )
    assert not estimator(batch).silent.any()


def levelled(batch: ScoredRollouts, *, level: float, score: float) -> ScoredRollouts:
    """The rows of group 0 with equal rewards and scores of every kind; their lengths differ as they did."""
    rows = batch.group == 0
    assert batch.components is not None
    components = np.where(rows[:, None], [level, score], batch.components)
    outcome = np.where(rows & batch.scorable, level, batch.outcome)

    def lists(ragged: Ragged | None) -> Ragged:
        assert ragged is not None
        return joined(
            [np.full_like(ragged.row(row), score) if rows[row] else ragged.row(row) for row in range(len(rows))]
        )

    return replace(
        batch,
        outcome=outcome,
        process=np.where(rows, score, batch.process),
        correct=np.where(rows, level > 0, batch.correct),
        components=components,
        step_scores=lists(batch.step_scores),
    )


@many
@given(
    estimator=st.sampled_from([*GROUPWISE, *SCALED, *BY_REWARDS]), batch=token_rollouts(), level=LEVELS, score=LEVELS
)
def test_c_22_a_group_of_equal_rewards_has_exactly_zero_and_a_reason(
    estimator: Advantage, batch: ScoredRollouts, level: float, score: float
):
    """Whatever stands in the other groups, and dynamic sampling drops it."""
    batch = levelled(batch, level=level, score=score)
    rows = batch.group == 0
    # What PRIME compares are the tokens' rewards too; what RLOO takes there is a KL, which differs from row to row.
    prime = np.where(np.repeat(rows, batch.lengths), score, 0.1) if isinstance(estimator, Prime) else None
    offsets = np.append(0, np.cumsum(batch.lengths))
    batch = replace(batch, token_rewards=None if prime is None else Ragged(values=prime, offsets=offsets))
    terms = estimator(batch)
    assert terms.silent[rows].all()
    reasons = np.array(zero_reason(batch, terms))
    assert set(reasons[rows]) <= {"unscorable", "group_of_one", "equal_rewards"}
    assert not FilterGroups(metric="advantage").keeps(batch, terms)[rows].any()


@pytest.mark.parametrize("level", [0.7, 0.1 + 0.2])
@pytest.mark.parametrize("estimator", WHITENED, ids=repr)
def test_where_the_batch_s_mean_is_subtracted_equal_rewards_are_compared_with_other_groups(
    estimator: Advantage, level: float
):
    """By definition, not by rounding: the same number for each of them, and by no means a small one."""
    batch = ScoredRollouts(
        group=np.array([0, 0, 1, 1]),
        outcome=np.array([level, level, 1.0, 0.0]),
        correct=np.array([True, True, True, False]),
        process=np.full(4, np.nan),
        lengths=np.array([1, 1, 3, 1]),
        token_rewards=joined([np.full(1, level), np.full(1, level), np.full(3, 0.1), np.full(1, 0.4)]),
    )
    rows = by_row(estimator(batch), batch)
    assert rows[0] == rows[1]
    assert abs(rows[0][0]) > 0.1
