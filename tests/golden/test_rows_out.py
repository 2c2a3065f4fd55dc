"""Rows that are out of a statistic: without a reward, or without another row to be compared with (C-21, C-22)."""

from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from papo.advantages import Advantage, Prime, prime_normalized, zero_reason
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
