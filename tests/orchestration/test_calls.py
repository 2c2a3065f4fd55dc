"""What may cross a task's border."""

from typing import Any

import polars as pl
import pytest

from flows.artifacts import slug, table_row
from flows.prefect_calls import PARAMETER_BYTES, check_references, task_name
from schemas.records import FrameRef

REFERENCE = FrameRef(
    stage="generate", version=1, iteration=7, shard=3, key="k" * 64, sha256="s" * 64, rows=128,
    path="iterations/00007/rollouts-0003-abcdef01.parquet",
)  # fmt: skip


def test_tasks_are_named_by_iteration_and_stage() -> None:
    assert task_name("generate", 7) == "00007/generate"
    assert task_name("prepare", -1) == "genesis/prepare"


@pytest.mark.parametrize("data", [pl.DataFrame({"a": [1]}), {"a": 1}, object(), [pl.DataFrame()]])
def test_data_is_refused(data: Any) -> None:
    """BUG-120: only path and hash cross a task's border; anything else is an error, not a silent copy."""
    with pytest.raises(TypeError, match="FrameRef"):
        check_references("generate", {"rollouts": data})


def test_a_large_parameter_is_refused() -> None:
    """BUG-120: a parameter above 100 KB is refused when it is submitted."""
    check_references("generate", {"text": "x" * (PARAMETER_BYTES - 2)})
    with pytest.raises(ValueError, match="'text' of stage generate weighs 100003 bytes"):
        check_references("generate", {"text": "x" * (PARAMETER_BYTES + 1)})


def test_a_hundred_thousand_rollouts_are_references() -> None:
    """BUG-120: 100,000 rows in shards of 128 weigh more than 100 KB as references, and are no table."""
    check_references("update", {"rollouts": [REFERENCE] * 782, "prompts": REFERENCE, "none": None})


def test_artifacts_have_keys_and_rows_that_the_ui_takes() -> None:
    assert slug("My_Run.v2") == "my-run-v2"
    assert slug("日本") == "run"
    row = table_row(
        -1, {"accuracy": None, "evaluation/accuracy": 0.51234, "seconds/evaluate": 1.0, "seconds/finish": 0.5}
    )
    assert (row["iteration"], row["held-out accuracy"], row["accuracy"], row["seconds"]) == (
        "before",
        0.5123,
        None,
        1.5,
    )
