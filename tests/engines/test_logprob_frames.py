"""Frames of the logprobs stage as the stage makes them: both columns, the one that nobody needs null throughout."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.algorithm import PAPO
from papo.engines.requests import Update
from papo.engines.rows import training_rows
from papo.engines.settings import OptimizerSettings
from papo.errors import DataError

FLOATS = pl.List(pl.Float32)
KEY: dict[str, Any] = {"group_id": pl.Series([0, 0], dtype=pl.Int32), "sample_index": pl.Series([0, 1], dtype=pl.Int32)}
SCORES = [[-1.0, -2.0], [-3.0]]


def request(folder: Path, old: list[Any], ref: list[Any]) -> Update:
    rollouts = pl.DataFrame(
        {
            **KEY,
            "token_ids": [[1, 2], [3]],
            "completion_mask": [[True, True], [True]],
            "sampler_logprobs": SCORES,
            "finish_reason": ["stop", "stop"],
        }
    )
    frames = {
        "prompts": pl.DataFrame({"group_id": pl.Series([0], dtype=pl.Int32), "prompt_ids": [[7]]}),
        "rollouts": rollouts,
        "advantages": pl.DataFrame(
            {
                **KEY,
                "advantage": [1.0, -1.0],
                "token_advantages": pl.Series([None, None], dtype=pl.List(pl.Float64)),
                "returns": pl.Series([None, None], dtype=pl.List(pl.Float64)),
            }
        ),
        "logprobs": pl.DataFrame(
            {**KEY, "old_logprobs": pl.Series(old, dtype=FLOATS), "ref_logprobs": pl.Series(ref, dtype=FLOATS)}
        ),
    }
    paths = {name: str(folder / f"{name}.parquet") for name in frames}
    for name, frame in frames.items():
        frame.write_parquet(paths[name])
    return Update(
        prompts=(paths["prompts"],), rollouts=(paths["rollouts"],), advantages=paths["advantages"],
        logprobs=(paths["logprobs"],), algorithm=PAPO, optimizer=OptimizerSettings(), temperature=1.0, seed=0,
    )  # fmt: skip


@pytest.mark.parametrize(("old", "ref"), [(SCORES, [None, None]), ([None, None], SCORES), (SCORES, SCORES)])
def test_a_column_that_was_not_asked_for_is_not_there(tmp_path: Path, old: list[Any], ref: list[Any]) -> None:
    rows = training_rows(request(tmp_path, old, ref))
    assert rows.old_logprobs == (SCORES if old[0] else None)
    assert rows.ref_logprobs == (SCORES if ref[0] else None)


def test_bug_033_a_column_that_lacks_some_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"ref_logprobs of rollout \(group_id 0, sample_index 1\)"):
        training_rows(request(tmp_path, SCORES, [SCORES[0], None]))
