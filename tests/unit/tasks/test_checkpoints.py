"""When checkpoints are made, which are kept, and what a full disk leaves."""

from pathlib import Path
from typing import Any

import pytest

from papo.errors import DiskFull, EngineError
from schemas.records import IterationState
from tasks.checkpoints import checkpoint_due, kept_versions, newest_checkpoint
from tasks.disk import LocalDisk
from tasks.run import Run
from tests.simulation.engine import ScriptedEngine
from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench


def test_bug_098_best_and_newest_are_kept_by_number() -> None:
    scores = {1: 0.9, 2: 0.1, 3: 0.2, 9: 0.3, 10: 0.4}
    assert kept_versions(dict(scores), keep_every=None) == {0, 1, 10}, "the best and the newest: 9 comes before 10"
    assert kept_versions(dict.fromkeys(scores), keep_every=None) == {0, 10}, "without any score, the newest"
    assert kept_versions({1: 0.5, 2: 0.5, 3: 0.1}, keep_every=None) == {0, 2, 3}, "a tie goes to the newer one"
    assert kept_versions({1: None, 2: 0.5, 3: None}, keep_every=None) == {0, 2, 3}
    assert kept_versions(dict(scores), keep_every=3) == {0, 1, 3, 9, 10}
    assert kept_versions({}, keep_every=2) == set()


def test_bug_098_a_run_of_eleven_keeps_its_first_best_and_newest(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", config_with(iterations=11, checkpoint={"every": 1}, evaluation={"every": 1}))
    bench.run()
    accuracies = {c.state.policy.version: c.summary["evaluation/accuracy"] for c in bench.commits}
    best = max(accuracies, key=lambda version: (accuracies[version] or 0.0, version))
    assert [path.name for path in bench.paths("checkpoints/*")] == [f"{v:05d}" for v in sorted({0, best, 11})]
    newest = bench.opened(lambda run: newest_checkpoint(run, at_most=11))
    assert newest.version == 11


def due(run: Run, *, saving: float, iteration: float) -> list[int]:
    """Versions after the newest checkpoint at which another one is due."""
    run.save_seconds, run.iteration_seconds = saving, iteration
    newest = 3
    return [version - newest for version in range(newest + 1, newest + 60) if checkpoint_due(run, version)]


@pytest.mark.parametrize(("saving", "first"), [(0.01, 1), (0.05, 1), (0.06, 2), (0.5, 10), (1.0, 20)])
def test_auto_saves_as_often_as_costs_five_percent(tmp_path: Path, saving: float, first: int) -> None:
    bench = Bench(tmp_path / "run", config_with(checkpoint={"every": "auto"}))
    bench.run()
    assert bench.opened(lambda run: due(run, saving=saving, iteration=1.0))[0] == first


def test_a_fixed_number_saves_at_each_such_distance(done: Bench) -> None:
    assert done.opened(lambda run: due(run, saving=100.0, iteration=1.0))[0] == 2


class FullAt(LocalDisk):
    """A disk on which one checkpoint does not find room."""

    def __init__(self, root: Path, version: int) -> None:
        super().__init__(root)
        self._full = f"{version:05d}/weights.json"

    def write(self, path: str, data: bytes) -> None:
        if path.endswith(self._full):
            super().write(path, data[: len(data) // 2])
            raise DiskFull(f"No space left on disk while writing {path}.")
        super().write(path, data)


def test_bug_100_the_second_save_finds_the_disk_full(tmp_path: Path) -> None:
    straight = Bench(tmp_path / "straight")
    straight.run()
    bench = Bench(tmp_path / "run")
    with pytest.raises(DiskFull, match="00002"):
        bench.run(disk=FullAt(bench.folder, 2))
    assert [path.name for path in bench.paths("checkpoints/*")] == ["00000"], "no part of the second is left"
    assert bench.opened(lambda run: newest_checkpoint(run, at_most=9)).version == 0, "the first one is whole"
    bench.run()
    assert bench.hashes() == straight.hashes()


def test_bug_100_room_is_looked_for_before_a_checkpoint_is_begun(done: Bench) -> None:
    class Nearly(LocalDisk):
        def free(self) -> int:
            return 10

    done.config = config_with(iterations=4)
    with pytest.raises(DiskFull, match=r"needs about [\d,]+ bytes but 10 are free.*free some space, then resume"):
        done.run(disk=Nearly(done.folder))
    assert not [path for path in done.paths("checkpoints/*") if path.name.startswith(".tmp-")]
    done.run()
    assert len(done.commits) == 5


def test_a_checkpoint_holds_the_state_of_its_commit(done: Bench) -> None:
    states: dict[int, IterationState] = {commit.state.policy.version: commit.state for commit in done.commits}

    def manifests(run: Run) -> dict[int, Any]:
        found = (newest_checkpoint(run, at_most=version) for version in states)
        return {checkpoint.version: checkpoint.manifest.state for checkpoint in found if checkpoint}

    held = done.opened(manifests)
    assert held == {version: states[version] for version in held}
    assert {0, 3} <= held.keys()


def test_a_removal_that_was_cut_short_is_completed_by_the_next(done: Bench) -> None:
    """Its manifest is gone, so that nobody would take it for a checkpoint, but it still takes up the room."""
    debris = done.folder / "checkpoints/00001"
    debris.mkdir()
    (debris / "weights.json").write_text("large")
    done.config = config_with(iterations=4)
    done.run()
    assert not debris.exists()
    assert (done.folder / "checkpoints/00004/manifest.json").exists()


class Unwriting(ScriptedEngine):
    """Writes half of its checkpoint, then fails as a library does whose own write found no room."""

    def save(self, folder: str) -> None:
        super().save(folder)
        raise EngineError("PytorchStreamWriter failed writing file data/3")


@pytest.mark.parametrize(("free", "error"), [(10, DiskFull), (1 << 40, EngineError)])
def test_bug_100_an_engine_that_cannot_write_is_a_full_disk_only_where_there_is_no_room(
    tmp_path: Path, free: int, error: type[Exception]
) -> None:
    class Disk(LocalDisk):
        def free(self) -> int:
            return free

    bench = Bench(tmp_path / "run")
    disk = Disk(bench.folder)
    with pytest.raises(error) as raised:
        bench.run(disk=disk, engine=lambda _: Unwriting(disk))
    assert raised.type is error
    assert bench.disk.names("checkpoints") == [], "the half-written draft is removed"
    assert bench.run() is None, "with room again the run goes on"
