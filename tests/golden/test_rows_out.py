"""Rows that are out of a statistic: without a reward, or without another row to be compared with (C-21, C-22)."""

from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from papo.advantages import Advantage, GrpoProcess, MultiReward, Prime, prime_normalized, zero_reason
from papo.rollouts import AdvantageTerms, ScoredRollouts, ragged
from tests.golden.golden_vectors import assert_golden, load, numbers

VECTORS = load("rows_out")
ESTIMATOR: TypeAdapter[Advantage] = TypeAdapter(Advantage)
REASONS = {"a row that is alone": ["unscorable", "group_of_one"], "a group of equal rewards": ["equal_rewards"]}
CASES = [*VECTORS["rows"], *VECTORS["tokens"]]


def scored(case: dict[str, Any]) -> ScoredRollouts:
    lists: dict[str, Any] = {
        name: ragged([numbers(row) for row in case[name]])
        for name in ("token_rewards", "step_ends", "step_scores")
        if name in case
    }
    outcome = numbers(case["outcome"])
    return ScoredRollouts(
        group=np.array(case["group"]),
        outcome=outcome,
        correct=outcome == 1,
        process=np.full(len(outcome), np.nan),
        lengths=np.array(case["lengths"]),
        components=numbers(case["components"]) if "components" in case else None,
        **lists,
    )


def by_token(terms: AdvantageTerms, lengths: list[int]) -> np.ndarray:
    flat = np.repeat(terms.total, lengths)
    return flat if terms.tokens is None else flat + terms.tokens.values


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_c_21_and_c_22_rows_that_are_out_leave_the_statistics_of_the_batch(case: dict[str, Any]):
    batch = scored(case)
    terms = ESTIMATOR.validate_python(case["estimator"])(batch)
    lengths = case["lengths"] if terms.tokens is not None else [1] * len(case["lengths"])
    assert_golden(by_token(terms, lengths), case["advantage"], case["wrong"], rtol=0, atol=VECTORS["atol"])
    assert np.flatnonzero(terms.silent).tolist() == case["zero"], "exactly 0, and no other row is"
    reasons = {zero_reason(batch, terms)[row] for row in case["zero"]}
    assert reasons <= set(REASONS[case["name"].split(", ")[1]])


def test_c_21_the_largest_return_is_that_of_a_row_that_takes_part():
    case = VECTORS["prime_norm"]
    rewards = ragged([numbers(row) for row in case["rewards"]])
    batch = scored({**case, "group": [0, 0, 0], "lengths": [1, 2, 2], "token_rewards": case["rewards"]})
    found = prime_normalized(rewards, prime_norm="batch_norm", where=Prime().trained(batch).mask)
    expected, wrong = (np.concatenate([numbers(row) for row in rows]) for rows in
                       (case["normalized"], case["wrong"]["value"]))  # fmt: skip
    assert_golden(found.values, expected, {"name": case["wrong"]["name"], "value": wrong}, rtol=0, atol=VECTORS["atol"])


def test_c_22_equal_sums_are_equal_in_whatever_order_their_rewards_come():
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in their last bit where they are added one after another."""
    batch = ScoredRollouts(
        group=np.array([0, 0]),
        outcome=np.array([0.6, 0.6]),
        correct=np.array([False, False]),
        process=np.full(2, np.nan),
        lengths=np.array([1, 1]),
        components=np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]]),
    )
    assert MultiReward(reward_weights=(1.0, 1.0, 1.0))(batch).outcome.tolist() == [0.0, 0.0]


def test_c_21_a_row_that_alone_has_scored_steps_is_compared_with_nothing():
    """Its peer has a reward, but none of that kind."""
    batch = scored(
        {
            "group": [0, 0],
            "outcome": [1, 0],
            "lengths": [2, 1],
            "step_ends": [[0, 1], []],
            "step_scores": [[0.9, 0.1], []],
        }
    )
    assert not GrpoProcess()(batch).total.any()
    assert by_token(GrpoProcess()(batch), [2, 1]).tolist() == [0.0, 0.0, 0.0]
