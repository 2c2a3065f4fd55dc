"""Frames to the method's arrays: the same rows, in the same order, nulls as what they mean."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from papo.advantages import GrpoProcess
from papo.algorithm import PAPO
from papo.errors import DataError
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


@pytest.mark.parametrize(("name", "part"), [("outcomes", OUTCOMES), ("scores", SCORES)])
def test_c_27_a_rollout_without_its_row_is_named(name: str, part: pl.DataFrame) -> None:
    """A missing row would pass for an unscorable one, a surplus one would go unseen."""
    with pytest.raises(DataError, match=r"lacks .*, and so do 1 other"):
        scored_rollouts(frames(**{name: part[:1]}), algorithm=PAPO, iteration=0)
    stray = part[:1].with_columns(sample_index=pl.lit(9, dtype=part.schema["sample_index"]))
    with pytest.raises(DataError, match=r"sample_index 9\) is no rollout's"):
        scored_rollouts(frames(**{name: pl.concat([part, stray])}), algorithm=PAPO, iteration=0)


def test_c_27_a_step_beyond_the_tokens_is_named() -> None:
    ends = pl.Series("step_ends", [[1, 4], [2], []], dtype=pl.List(pl.Int32))
    with pytest.raises(DataError, match=r"step_ends of \(group_id \d+, sample_index \d+\) does not fit its 3 tokens"):
        scored_rollouts(frames(scores=SCORES.with_columns(ends)), algorithm=PAPO, iteration=0)


def test_c_27_a_list_of_another_length_is_named() -> None:
    lists = pl.Series("old_logprobs", [[-1.0] * 3, [-1.0], [-1.0]], dtype=pl.List(pl.Float32))
    said = ROLLOUTS.select("group_id", "sample_index").with_columns(
        lists, pl.Series("ref_logprobs", [None] * 3, dtype=pl.List(pl.Float32))
    )
    with pytest.raises(DataError, match=r"old_logprobs of .* does not fit its 2 tokens"):
        scored_rollouts(frames(logprobs=said), algorithm=PAPO, iteration=0)
