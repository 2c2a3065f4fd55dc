"""A run on predictions: nothing in its commits, its status or what it says of itself looks verified."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.artifacts import table_row, with_numbers
from flows.commands import described
from flows.reporters import iteration_line
from flows.samples import samples
from papo.correctness import OF_CORRECTNESS
from tasks.history import history_of
from tasks.status import Measured, status_of
from tasks.stopping import stop_reason
from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench

CODE = """
from papo.rewards import Verdict


def f(completion, **_):
    score = 0.75 if completion.endswith("<answer>1</answer>") else 0.25
    return Verdict(accuracy=score, correct=score >= 0.5, status="ok", judged_by="reward_model")
"""
VERIFIED = {"every": 2, "outcome": {"kind": "answer_match"}}


def trained(folder: Path, **sections: Any) -> Bench:
    file = folder / "judge.py"
    file.write_text(CODE)
    reward = {"outcome": {"kind": "custom", "target": f"{file}:f"}}
    bench = Bench(folder / "run", config_with(reward=reward, **sections))
    bench.run()
    return bench


def speaking(summary: dict[str, Any]) -> set[str]:
    """The metrics of a summary that speak of verified correctness."""
    return {name for name in summary if name.removeprefix("evaluation/").split("/")[0] in OF_CORRECTNESS}


def test_no_figure_of_a_prediction_has_a_verified_name(tmp_path: Path) -> None:
    bench = trained(tmp_path)
    summaries = [commit.summary for commit in bench.commits]
    assert not any(map(speaking, summaries))
    assert summaries[0]["evaluation/predicted_accuracy"] is not None
    assert {"predicted_accuracy", "predicted_all_correct_ratio", "predicted_order_violations"} <= summaries[1].keys()
    assert [commit.summary["rollouts"] for commit in bench.commits[1:]] == [4, 4, 4]


def test_with_a_verifier_for_the_held_out_rows_their_accuracy_is_verified(tmp_path: Path) -> None:
    bench = trained(tmp_path, evaluation=VERIFIED)
    assert {name for commit in bench.commits for name in speaking(commit.summary)} >= {"evaluation/accuracy"}
    assert all("evaluation/predicted_accuracy" not in commit.summary for commit in bench.commits)
    assert all("accuracy" not in commit.summary for commit in bench.commits)
    (entry,) = [entry for entry in bench.commits[0].entries if entry.stage == "evaluate"]
    assert pl.read_parquet(bench.folder / str(entry.path))["judged_by"].unique().to_list() == ["verifier"]


def test_another_judge_of_the_held_out_rows_is_another_evaluation(tmp_path: Path) -> None:
    """What is judged by other rules never has the other's key."""
    keys: list[str] = []
    for name, evaluation in (("own", {"every": 2}), ("verifier", VERIFIED)):
        (tmp_path / name).mkdir()
        bench = trained(tmp_path / name, evaluation=evaluation)
        keys += [entry.key for entry in bench.commits[0].entries if entry.stage == "evaluate"]
    assert len(set(keys)) == 2


def test_status_and_samples_say_that_it_is_predicted(tmp_path: Path) -> None:
    bench = trained(tmp_path)
    found = status_of(bench.folder)
    assert found is not None
    assert found.latest_evaluation is not None
    assert found.latest_evaluation.accuracy is None
    assert found.latest_evaluation.predicted_accuracy is not None
    assert all("predicted (n=" in value for name, value in described(found) if name.endswith("evaluation"))
    verdicts = [line for line in samples(bench.folder, at=0, order="first", count=9) if line.startswith("verdict")]
    assert verdicts
    said = ("predicted right 0.75 (ok)", "predicted wrong 0.25 (ok)")
    assert all(line.split(", reward")[0].endswith(said) for line in verdicts), "no answer is looked for"


def test_no_version_is_the_best_by_a_prediction(tmp_path: Path) -> None:
    """A verified evaluation keeps its best version; a predicted one keeps none for what a model says of it."""
    for name, evaluation in (("predicted", {"every": 1}), ("verified", VERIFIED)):
        (tmp_path / name).mkdir()
        bench = trained(tmp_path / name, evaluation=evaluation)
        manifests = [json.loads(path.read_text()) for path in bench.paths("checkpoints/*/manifest.json")]
        known = [manifest["accuracy"] for manifest in manifests if manifest["accuracy"] is not None]
        assert bool(known) == (name == "verified")


def test_lines_and_tables_call_it_predicted() -> None:
    values: dict[str, float | int | bool | None] = {
        "predicted_accuracy": 0.5,
        "evaluation/predicted_accuracy": 0.25,
        "evaluation/n": 8,
    }
    line = iteration_line(3, values)
    assert "predicted accuracy 0.50" in line
    assert "HELD-OUT 0.250 (predicted, n=8)" in line
    (row,) = with_numbers([table_row(3, values)])
    assert row == {
        "iteration": 3, "predicted accuracy": 0.5, "held-out predicted accuracy": 0.25, "seconds": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["evaluation/accuracy", "evaluation/predicted_accuracy"])
def test_a_plateau_is_looked_for_among_figures_of_one_kind(tmp_path: Path, name: str) -> None:
    bench = trained(tmp_path, evaluation=None)
    other = ({"evaluation/accuracy", "evaluation/predicted_accuracy"} - {name}).pop()
    measured = [{other: 0.9}, {name: 0.1}, {name: 0.2}]
    commits = [
        commit.model_copy(update={"summary": summary}) for commit, summary in zip(bench.commits, measured, strict=False)
    ]
    config = config_with(stop={"plateau_evaluations": 1})
    assert stop_reason(config, history_of(commits)) is None, "0.9 is another measure"
    worse = [*commits[:2], commits[2].model_copy(update={"summary": {name: 0.1}})]
    assert "plateau" in (stop_reason(config, history_of(worse)) or "")


def test_what_is_right_by_an_llm_alone_is_said_beside_the_accuracy() -> None:
    """A lying judge took a run from 0.580 to 0.805, and the last line called that held-out accuracy."""
    values: dict[str, float | int | bool | None] = {
        "accuracy": 0.5, "llm_corrected": 0.125, "evaluation/accuracy": 0.8, "evaluation/llm_corrected": 0.3,
        "evaluation/n": 10,
    }  # fmt: skip
    line = iteration_line(3, values)
    assert "accuracy 0.50 (0.125 of it by an LLM)" in line
    assert "HELD-OUT 0.800 (0.300 of it by an LLM) (n=10)" in line
    assert "LLM" not in iteration_line(3, {**values, "llm_corrected": 0.0, "evaluation/llm_corrected": None})
    assert Measured(version=3, accuracy=0.8, n=10, llm_corrected=0.3).shown == "0.800 (0.300 of it by an LLM)"
    assert Measured(version=3, accuracy=0.8, n=10, llm_corrected=0.0).shown == "0.800"
