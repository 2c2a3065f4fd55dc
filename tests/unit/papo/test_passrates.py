"""How often rows were solved, from a run's frames alone."""

import hashlib
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.errors import DataError
from papo.passrates import COLUMNS, of_first_policy, of_training, solved, unsolved
from papo.runs import RunView

VISITS: list[tuple[int, list[tuple[str, list[bool | None]]]]] = [
    (0, [("easy", [True, True]), ("hard", [False, False]), ("mixed", [True, False])]),
    (1, [("easy", [True, True]), ("easy", [True, True]), ("hard", [False, None]), ("dark", [None, None])]),
]


def committed(folder: Path, iteration: int, stages: dict[str, pl.DataFrame]) -> None:
    home = folder / "iterations" / ("genesis" if iteration < 0 else f"{iteration:05d}")
    home.mkdir(parents=True)
    entries: list[dict[str, Any]] = []
    for stage, frame in stages.items():
        path = home / f"{stage}.parquet"
        frame.write_parquet(path)
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        entries.append({"stage": stage, "path": str(path.relative_to(folder)), "output_sha256": sha256})
    (home / "commit.json").write_text(json.dumps({"entries": entries}))


def outcomes(groups: list[tuple[str, list[bool | None]]]) -> pl.DataFrame:
    rows = [
        {"group_id": group, "sample_index": index, "correct": correct, "judged_by": "verifier", "prompt_id": name}
        for group, (name, found) in enumerate(groups)
        for index, correct in enumerate(found)
    ]
    return pl.DataFrame(rows, schema_overrides={"correct": pl.Boolean})


@pytest.fixture
def run(tmp_path: Path) -> RunView:
    for iteration, groups in VISITS:
        frame = outcomes(groups)
        prompts = pl.DataFrame({"group_id": range(len(groups)), "prompt_id": [name for name, _ in groups]})
        committed(tmp_path, iteration, {"sample": prompts, "verify": frame.drop("prompt_id")})
    return RunView(tmp_path)


def test_bug_133_rows_that_are_never_or_always_solved_are_listed_over_their_visits(run: RunView) -> None:
    rates = of_training(run)
    assert rates.columns == list(COLUMNS)
    assert rates.select("prompt_id", "pass_rate", "tries", "undecided", "visits", "first", "last").rows() == [
        ("easy", 1.0, 6, 0, 3, 0, 1),
        ("hard", 0.0, 3, 1, 2, 0, 1),
        ("mixed", 0.5, 2, 0, 1, 0, 0),
        ("dark", None, 0, 2, 1, 1, 1),
    ]
    assert unsolved(rates, min_visits=2)["prompt_id"].to_list() == ["hard"]
    assert unsolved(rates, min_visits=1)["prompt_id"].to_list() == ["hard"]
    assert unsolved(rates, min_visits=3).is_empty()
    assert solved(rates, min_visits=3)["prompt_id"].to_list() == ["easy"]


def test_the_first_policy_is_rated_by_the_evaluation_before_the_first_iteration(tmp_path: Path) -> None:
    committed(tmp_path, -1, {"evaluate": outcomes([("a", [True, False, None]), ("b", [False])])})
    rates = of_first_policy(RunView(tmp_path))
    assert rates.select("prompt_id", "pass_rate", "tries", "right", "visits").rows() == [
        ("a", 0.5, 2, 1, 1),
        ("b", 0.0, 1, 0, 1),
    ]


def test_a_run_without_iterations_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no committed iteration yet"):
        of_training(RunView(tmp_path))
