from typing import Any

import numpy as np
import pytest

from papo.rollouts import AdvantageTerms, Ragged, ScoredRollouts


def columns(**changes: Any) -> dict[str, Any]:
    rows: dict[str, Any] = {
        "group": np.zeros(3, dtype=np.int64),
        "outcome": np.array([1.0, 0.0, np.nan]),
        "correct": np.array([True, False, False]),
        "process": np.full(3, np.nan),
        "lengths": np.array([4, 5, 6]),
    }
    return rows | changes


def test_rows_without_a_reward_are_unscorable():
    assert ScoredRollouts(**columns()).scorable.tolist() == [True, True, False]


def test_infinite_rewards_are_refused_by_row():
    with pytest.raises(ValueError, match="outcome of row 1 is infinite"):
        ScoredRollouts(**columns(outcome=np.array([0.0, np.inf, 0.0])))


@pytest.mark.parametrize("name", ["outcome", "correct", "process", "lengths"])
def test_columns_of_another_length_are_refused(name: str):
    """Under the shape checks of the tests jaxtyping speaks first; without them the constructor does."""
    short = columns()[name][:2]
    with pytest.raises((ValueError, TypeError)):
        ScoredRollouts(**columns(**{name: short}))


def test_ragged_rows_are_slices():
    ragged = Ragged(values=np.array([1.0, 2.0, 3.0]), offsets=np.array([0, 2, 2, 3]))
    assert [ragged.row(row).tolist() for row in range(ragged.rows)] == [[1.0, 2.0], [], [3.0]]


@pytest.mark.parametrize("offsets", [[0, 2], [1, 3], [0, 3, 2, 3], []])
def test_ragged_offsets_must_cover_the_values(offsets: list[int]):
    with pytest.raises(ValueError, match="offsets of ragged rows"):
        Ragged(values=np.array([1.0, 2.0, 3.0]), offsets=np.array(offsets, dtype=np.int64))


def test_ragged_fields_have_one_list_a_rollout():
    two = Ragged(values=np.array([1.0]), offsets=np.array([0, 1, 1]))
    with pytest.raises(ValueError, match="step_scores has 2 rows"):
        ScoredRollouts(**columns(step_scores=two))


def test_total_is_the_sum_of_the_parts():
    terms = AdvantageTerms(
        outcome=np.array([1.0, -1.0]), process=np.array([0.5, 0.0]), process_active=np.array([True, False])
    )
    assert terms.total.tolist() == [1.5, -1.0]
