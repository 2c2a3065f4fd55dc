"""A run on a reward model: its scores as rewards, its files in the key, its engine's death survived."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.engines.protocol import Progress
from papo.engines.requests import ScoreTexts
from papo.errors import DataError, EngineDied, RewardFailed
from tasks.modelfiles import files_sha256
from tests.simulation.engine import ScriptedEngine
from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench

MODEL = {"kind": "reward_model", "path": "somewhere"}


def with_model(folder: Path, judge: dict[str, Any] | None = None, **sections: Any) -> Bench:
    return Bench(folder, config_with(reward={"outcome": MODEL | (judge or {})}, **sections))


def frame(bench: Bench, stage: str, iteration: int) -> pl.DataFrame:
    entries = [entry for entry in bench.commits[iteration + 1].entries if entry.stage == stage]
    return pl.concat([pl.read_parquet(bench.folder / str(entry.path)) for entry in entries])


def run(bench: Bench, sha256: str = "of the files", **changes: Any) -> Bench:
    bench.run(hashed=lambda folder: sha256, **changes)
    return bench


def test_scores_are_rewards_and_say_what_gave_them(tmp_path: Path) -> None:
    bench = run(with_model(tmp_path / "run"))
    rows = pl.concat([frame(bench, "verify", iteration) for iteration in range(3)])
    scores = rows["accuracy_reward"].drop_nulls()
    assert scores.is_between(0, 1).all()
    assert not scores.is_in([0.0, 1.0]).any(), "soft scores are kept"
    assert rows["correct"].to_list() == [None if score is None else score >= 0.5 for score in rows["accuracy_reward"]]
    assert (rows["outcome_reward"].is_null() == (rows["status"] == "unscorable")).all()
    assert rows["judged_by"].unique().to_list() == ["reward_model"]
    (version,) = rows["verifier_version"].unique()
    assert version.startswith("reward_model/1 {")
    assert version.endswith(" sha256=of the files")
    assert frame(bench, "evaluate", -1)["judged_by"].unique().to_list() == ["reward_model"]


def test_other_files_are_another_reward_wherever_they_lie(tmp_path: Path) -> None:
    keys: list[list[str]] = []
    for number, (path, sha256) in enumerate((("here", "a"), ("there", "a"), ("here", "b"))):
        bench = run(with_model(tmp_path / str(number), {"path": path}), sha256)
        keys.append([entry.key for entry in bench.commits[1].entries if entry.stage == "verify"])
    assert keys[0] == keys[1]
    assert not set(keys[0]) & set(keys[2])


def test_a_folder_may_move_between_two_starts(tmp_path: Path) -> None:
    wanted = run(with_model(tmp_path / "wanted")).hashes()
    run(with_model(tmp_path / "run"), limit=1)
    assert run(with_model(tmp_path / "run", {"path": "elsewhere"})).hashes() == wanted


def test_other_files_in_the_middle_of_a_run_are_said_aloud(tmp_path: Path) -> None:
    bench = run(with_model(tmp_path / "run"), "a", limit=1)
    run(bench, "a", limit=1)
    assert bench.events("reward_model_changed") == []
    run(bench, "b")
    (event,) = bench.events("reward_model_changed")
    assert (event["iteration"], event["before"], event["now"]) == (2, "a", "b")
    assert frame(bench, "verify", 2)["verifier_version"][0].endswith(" sha256=b")


class Mortal(ScriptedEngine):
    """Dies the first time that it is asked for scores."""

    deaths = 0

    def score_texts(self, request: ScoreTexts, progress: Progress | None = None) -> None:
        if type(self).deaths == 0:
            type(self).deaths = 1
            self.close()
            raise EngineDied("in the middle of scoring")
        super().score_texts(request, progress)


def test_an_engine_that_dies_while_scoring_is_brought_back_and_asked_again(tmp_path: Path) -> None:
    wanted = run(with_model(tmp_path / "wanted")).hashes()
    bench = with_model(tmp_path / "run")
    Mortal.deaths = 0
    run(bench, engine=lambda _: Mortal(bench.disk))
    assert Mortal.deaths == 1
    assert len(bench.events("engine_died")) == 1
    assert bench.hashes() == wanted
    assert not list((bench.folder / "scratch").iterdir())


class Broken(ScriptedEngine):
    """A model that has no score for anything."""

    def score_texts(self, request: ScoreTexts, progress: Progress | None = None) -> None:
        rows = self._read(request.rows)
        nothing = {"score": None, "status": "error", "reason": "the model's score is nan"}
        self._write(request.output, pl.DataFrame([nothing] * rows.height, schema_overrides={"score": pl.Float64}))


def test_bug_067_a_model_that_has_no_finite_scores_stops_the_run(tmp_path: Path) -> None:
    bench = with_model(tmp_path / "run", evaluation=None)
    with pytest.raises(RewardFailed, match="score is nan"):
        run(bench, engine=lambda _: Broken(bench.disk))


def test_a_folder_is_known_by_its_files_and_not_by_its_notes(tmp_path: Path) -> None:
    model = tmp_path / "rm"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"weights")
    first = files_sha256(str(model))
    (model / "README.md").write_text("notes")
    (model / ".gitattributes").write_text("x")
    assert files_sha256(str(model)) == first
    moved = tmp_path / "elsewhere"
    model.rename(moved)
    assert files_sha256(str(moved)) == first
    (moved / "model.safetensors").write_bytes(b"Weights")
    assert files_sha256(str(moved)) != first
    with pytest.raises(DataError, match=r"cannot be read.*reward\.outcome\.path"):
        files_sha256(str(model))
