from typing import Any, cast

import numpy as np
import pytest

from papo.losses import LossAggMode, row_weights

MODES: list[LossAggMode] = ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"]


def weights(lengths: list[int], mode: LossAggMode, **options: Any) -> list[float]:
    constant = 8 if mode == "seq-mean-token-sum-norm" else None
    return row_weights(np.array(lengths, dtype=np.int64), mode=mode, constant=constant, **options).tolist()


@pytest.mark.parametrize("mode", MODES)
def test_a_row_that_is_masked_away_leaves_the_divisor(mode: LossAggMode):
    """BUG-001: lengths are counted after the last mask, so a truncated row B leaves the loss of A alone."""
    assert weights([4, 0], mode) == [weights([4], mode)[0], 0.0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("empty_rows", ["exclude", "count"])
def test_a_fully_masked_batch_weighs_nothing(mode: LossAggMode, empty_rows: Any):
    """BUG-001: no division by zero."""
    assert weights([0, 0, 0], mode, empty_rows=empty_rows) == [0.0, 0.0, 0.0]
    assert weights([], mode, empty_rows=empty_rows) == []


def test_counting_empty_rows_is_a_choice():
    assert weights([4, 0], "seq-mean-token-sum", empty_rows="exclude") == [1.0, 0.0]
    assert weights([4, 0], "seq-mean-token-sum", empty_rows="count") == [0.5, 0.0]


@pytest.mark.parametrize("mode", MODES)
def test_rows_without_a_reward_take_no_part_even_where_empty_rows_count(mode: LossAggMode):
    scored = np.array([True, False, True])
    kept = weights([2, 5], mode, empty_rows="count")
    assert weights([2, 7, 5], mode, empty_rows="count", where=scored) == [kept[0], 0.0, kept[1]]


def test_the_constant_of_dr_grpo_is_asked_for():
    """BUG-003: never the width of a batch that happened to be padded."""
    for constant in (None, 0):
        with pytest.raises(ValueError, match="loss_norm_constant"):
            row_weights(np.array([3]), mode="seq-mean-token-sum-norm", constant=constant)


def test_an_unknown_rule_is_refused():
    """BUG-004. The type check of the tests speaks first; without it the function does."""
    with pytest.raises((ValueError, TypeError)):
        row_weights(np.array([3]), mode=cast(Any, "mean"))
