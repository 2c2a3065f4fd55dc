"""Looking at a run and taking a version of its policy out."""

import json
from pathlib import Path

import pytest

from flows.samples import chosen, samples
from papo.errors import DataError
from papo.runs import open_run
from tasks.export import export_version
from tasks.status import all_runs
from tests.unit.tasks.bench import Bench, flip


def test_rollouts_stand_beside_their_verdicts_and_credit(done: Bench) -> None:
    view = open_run(done.folder)
    assert view.iterations == [0, 1, 2]
    rows = view.rollouts(1)
    assert rows.height == 4
    assert {"completion", "correct", "process_score", "advantage", "question"} <= set(rows.columns)
    assert view.summaries()["accuracy"].to_list() == [commit.summary["accuracy"] for commit in done.commits[1:]]


def test_what_is_not_there_is_named(done: Bench, tmp_path: Path) -> None:
    view = open_run(done.folder)
    with pytest.raises(DataError, match=r"Iteration 7 .* is not committed. Committed iterations: 0 to 2"):
        view.frame(7, "generate")
    with pytest.raises(DataError, match=r"no frames of 'logprobs'. Its stages: sample, generate"):
        view.frame(0, "logprobs")
    with pytest.raises(DataError, match="holds no run"):
        open_run(tmp_path)


def test_samples_are_ordered_by_advantage(done: Bench) -> None:
    rows = open_run(done.folder).rollouts(0)
    best, worst = chosen(rows, "best")["advantage"], chosen(rows, "worst")["advantage"]
    assert best[0] == rows["advantage"].max()
    assert worst[0] == rows["advantage"].min()
    assert chosen(rows, "truncated").height == 0
    lines = list(samples(done.folder, at=0, order="best", count=2))
    assert lines[0] == "Iteration 0, best: 2 of 4 rollouts"
    assert sum(line.startswith("── group") for line in lines) == 2


def test_a_damaged_run_hides_no_other(done: Bench) -> None:
    other = done.copy(done.folder.parent / "other")
    flip(other.folder / "iterations/00001/commit.json")
    broken, sound = all_runs(done.folder.parent)
    assert (broken.state, Path(broken.folder).name) == ("damaged", "other")
    assert "commit" in (broken.reason or "")
    assert sound.iteration == 3


def test_any_version_can_be_exported_by_replay(done: Bench, tmp_path: Path) -> None:
    wanted = done.commits[1].state.policy.fingerprint.policy_sha256
    # The scripted engine writes by the run's own disk, so the export goes below the run's folder.
    folder = done.opened(lambda run: export_version(run, 1, done.folder / "exports" / "one"))
    assert json.loads((folder / "model.json").read_text())["weights"] == wanted
    assert json.loads((folder / "papo.json").read_text())["policy_sha256"] == wanted
    with pytest.raises(DataError, match="is there already"):
        done.opened(lambda run: export_version(run, 1, folder))
    with pytest.raises(DataError, match="has versions 0 to 3, not 9"):
        done.opened(lambda run: export_version(run, 9, tmp_path / "nine"))
    assert not (tmp_path / "nine").exists()
