"""Where things are now of a run whose folder, project or model was moved."""

import shutil
from pathlib import Path

import pytest

from tasks.relocated import base_now, found_model, from_run, is_called
from tasks.runfile import RunFile, epoch
from tests.simulation.world import config_with

TRAIN = {"kind": "file", "path": "train.jsonl"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with data, a model and the folder of a run."""
    place = tmp_path / "project"
    (place / "models/tiny").mkdir(parents=True)
    (place / "runs/run").mkdir(parents=True)
    (place / "train.jsonl").write_text("")
    for name in ("config.json", "tokenizer.json"):
        (place / "models/tiny" / name).write_text("{}")
    (place / "models/tiny/model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    return place


def run_file_of(project: Path) -> RunFile:
    config = config_with(data={"train": TRAIN}, model={"path": "models/tiny"}, evaluation=None)
    base, model, folder = str(project), str(project / "models/tiny"), project / "runs/run"
    near = {"base": from_run(base, folder), "model": from_run(model, folder)}
    return RunFile(run_id="run", base=base, model=model, near=near, sources={}, epochs=(epoch(config, since=0),))


def test_c_01_what_stayed_is_where_it_was_though_the_run_was_moved_alone(project: Path, tmp_path: Path) -> None:
    run_file, elsewhere = run_file_of(project), tmp_path / "else" / "where" / "run"
    elsewhere.mkdir(parents=True)
    assert base_now(run_file, elsewhere) == project
    assert found_model(run_file, project, elsewhere) == str(project / "models/tiny")


@pytest.mark.parametrize("is_left", [False, True])
def test_a_project_that_was_moved_is_found_from_the_run_first(project: Path, tmp_path: Path, is_left: bool) -> None:
    """Also where its former place still is, or has another project by now."""
    run_file, there = run_file_of(project), tmp_path / "there"
    project.rename(there)
    if is_left:
        (project / "models/tiny").mkdir(parents=True)
        (project / "train.jsonl").write_text("another\n")
        shutil.copytree(there / "models", project / "models", dirs_exist_ok=True)
    assert base_now(run_file, there / "runs/run") == there
    assert found_model(run_file, there, there / "runs/run") == str(there / "models/tiny")


def test_a_place_without_all_that_the_config_names_is_not_the_base(project: Path, tmp_path: Path) -> None:
    run_file, folder = run_file_of(project), tmp_path / "other/runs/run"
    folder.mkdir(parents=True)
    (tmp_path / "other/models/tiny").mkdir(parents=True)
    assert base_now(run_file, folder) == project


def test_a_model_that_was_moved_alone_is_found_by_what_the_config_says_now(project: Path, tmp_path: Path) -> None:
    run_file, base = run_file_of(project), tmp_path / "base"
    (project / "models").rename(tmp_path / "models.away")
    (base / "models/tiny").mkdir(parents=True)
    assert found_model(run_file, base, project / "runs/run") == str(base / "models/tiny")


def test_c_01_a_link_is_the_same_folder_and_a_copy_is_not(project: Path) -> None:
    runs = project / "runs"
    (runs / "link").symlink_to("run")
    (runs / "copy").mkdir()
    assert is_called(runs / "link", "run")
    assert is_called(runs / "run", "run")
    assert not is_called(runs / "copy", "run")
    assert not is_called(runs / "run", "gone")
