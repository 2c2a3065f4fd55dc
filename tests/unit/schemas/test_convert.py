"""Frames to the method's arrays: the same rows, in the same order, nulls as what they mean."""

from typing import Any

import numpy as np
import polars as pl

from papo.advantages import GrpoProcess
from papo.algorithm import PAPO
from schemas.convert import BatchFrames, advantages_frame, scored_rollouts

KEYS = {"group_id": pl.Series([0, 0, 0], dtype=pl.Int32), "sample_index": pl.Series([0, 1, 2], dtype=pl.Int32)}
ROLLOUTS = pl.DataFrame(
    {
        **KEYS,
        "token_ids": pl.Series([[1, 2, 3], [4, 5], [6]], dtype=pl.List(pl.Int32)),
        "completion_mask": [[True] * 3, [True] * 2, [True]],
        "finish_reason": ["stop", "length", "stop"],
    }
)
OUTCOMES = pl.DataFrame(
    {
        **KEYS,
        "outcome_reward": [1.0, 0.0, None],
        "correct": [True, False, None],
        "components": [[1.0, 0.5], [0.0, 1.0], [None, 1.0]],
    }
)
SCORES = pl.DataFrame(
    {
        **KEYS,
        "process_score": [0.5, None, 0.0],
        "step_ends": pl.Series([[1, 3], [2], []], dtype=pl.List(pl.Int32)),
        "step_scores": pl.Series([[0.9, None], [0.1], []], dtype=pl.List(pl.Float32)),
    }
)


def frames(**others: Any) -> BatchFrames:
    return BatchFrames(**{"rollouts": ROLLOUTS, "outcomes": OUTCOMES, "scores": SCORES, **others})


def test_rows_keep_their_own_values_whatever_the_order_of_the_other_frames() -> None:
    """BUG-135: joined by key, never by position."""
    scored = scored_rollouts(frames(outcomes=OUTCOMES.reverse(), scores=SCORES.reverse()), algorithm=PAPO, iteration=7)
    assert np.array_equal(scored.outcome, [1.0, 0.0, np.nan], equal_nan=True)
    assert scored.correct.tolist() == [True, False, False]
    assert np.array_equal(scored.process, [0.5, np.nan, 0.0], equal_nan=True)
    assert scored.lengths.tolist() == [3, 2, 1]
    assert scored.iteration == 7


def test_steps_end_with_their_last_token_and_failed_ones_are_nan() -> None:
    scored = scored_rollouts(frames(), algorithm=PAPO, iteration=0)
    assert scored.step_ends is not None
    assert scored.step_scores is not None
    assert [scored.step_ends.row(row).tolist() for row in range(3)] == [[0.0, 2.0], [1.0], []]
    assert scored.step_scores.row(0)[0] == np.float32(0.9)
    assert np.isnan(scored.step_scores.row(0)[1])
    assert scored.step_scores.row(2).tolist() == []


def test_credit_that_varies_over_tokens_becomes_one_list_a_row() -> None:
    scored = scored_rollouts(frames(), algorithm=PAPO, iteration=0)
    frame = advantages_frame(ROLLOUTS, scored, GrpoProcess()(scored))
    assert frame["token_advantages"].list.len().to_list() == [3, 2, 1]
    first, second = frame["token_advantages"][0].to_list(), frame["token_advantages"][1].to_list()
    assert first[0] > 0 > second[0], "0.9 and 0.1 are z-scored over the group's steps"
    assert first[1:] == [0.0, 0.0], "the failed step adds nothing"
    assert frame["advantage"][2] is None, "an unscorable row leaves loss and divisor"


def test_without_a_scorer_there_are_no_steps() -> None:
    scored = scored_rollouts(frames(scores=None), algorithm=PAPO, iteration=0)
    assert scored.step_ends is None
    assert np.isnan(scored.process).all()
