"""Weights that a run starts from and does not keep: compared at each opening, named where they differ."""

import os
from pathlib import Path
from typing import Any

import pytest

from papo.errors import DataError
from tasks import modelfiles
from tasks.modelfiles import weights_in
from tasks.opening import close_run, open_run
from tasks.runfile import read_run_file
from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench

NEVER = {"every": 100, "keep_every": 100}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "model"
    place.mkdir()
    (place / "model.safetensors").write_bytes(b"weights")
    return place


def looking_at(folder: Path) -> dict[str, Any]:
    return {
        "weights": lambda run_file: {
            role: weights_in(folder, run_file.weights.get(role, {})) for role in ("policy", "critic")
        }
    }


def opened(bench: Bench, folder: Path) -> None:
    run, _ = open_run(bench.around(**looking_at(folder)), bench.folder.name, None)
    close_run(run)


def begun(tmp_path: Path, folder: Path, *, limit: int = 1) -> Bench:
    bench = Bench(tmp_path / "bench", config_with(checkpoint=NEVER))
    bench.run(limit=limit, **looking_at(folder))
    for path in bench.folder.glob("checkpoints/*/manifest.json"):
        path.unlink()
    return bench


@pytest.mark.parametrize("change", ["edited", "gone", "more"])
def test_weights_that_are_needed_are_refused_by_name(tmp_path: Path, folder: Path, change: str) -> None:
    bench = begun(tmp_path, folder)
    opened(bench, folder)
    if change == "edited":
        (folder / "model.safetensors").write_bytes(b"Weights")
        expected = r"model.safetensors of the critic's model folder is another file than when run bench began: sha256"
    elif change == "gone":
        (folder / "model.safetensors").unlink()
        expected = r"model.safetensors of the critic's model folder is not there any more"
    else:
        (folder / "more.bin").write_bytes(b"")
        expected = r"more.bin of the critic's model folder was not there when the run began"
    before = (bench.folder / "run.yaml").read_bytes()
    with pytest.raises(DataError, match=expected) as caught:
        opened(bench, folder)
    assert "of the policy's model folder" in str(caught.value), "all of them at once"
    assert (bench.folder / "run.yaml").read_bytes() == before


def test_weights_are_read_only_where_size_or_time_differ(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = begun(tmp_path, folder)
    read: list[Path] = []
    digest = modelfiles._digest

    def noted(path: Path) -> str:
        read.append(path)
        return digest(path)

    monkeypatch.setattr(modelfiles, "_digest", noted)
    opened(bench, folder)
    assert read == []
    os.utime(folder / "model.safetensors", ns=(1, 1))
    opened(bench, folder)
    assert len(read) == 2, "once for each role"
    opened(bench, folder)
    assert len(read) == 2, "the new time is noted"
    run_file = read_run_file(bench.disk)
    assert run_file is not None
    assert {files["model.safetensors"].mtime_ns for files in run_file.weights.values()} == {1}


def test_weights_that_a_checkpoint_has_may_be_gone(tmp_path: Path, folder: Path) -> None:
    bench = Bench(tmp_path / "bench", config_with(checkpoint={"every": 1}))
    bench.run(limit=1, **looking_at(folder))
    (folder / "model.safetensors").unlink()
    opened(bench, folder)


def test_a_run_from_before_they_were_recorded_goes_on(tmp_path: Path, folder: Path) -> None:
    bench = Bench(tmp_path / "bench", config_with(checkpoint=NEVER))
    bench.run(limit=1)
    opened(bench, folder)
    run_file = read_run_file(bench.disk)
    assert run_file is not None
    assert run_file.weights == {}


def test_an_adapter_s_base_is_needed_always(tmp_path: Path, folder: Path) -> None:
    config = config_with(model={"path": "somewhere", "lora": {"rank": 2}}, checkpoint={"every": 1})
    bench = Bench(tmp_path / "bench", config)
    bench.run(limit=1, **looking_at(folder))
    (folder / "model.safetensors").unlink()
    with pytest.raises(DataError, match="of the policy's model folder is not there any more") as caught:
        opened(bench, folder)
    assert "critic" not in str(caught.value)
