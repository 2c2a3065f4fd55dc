"""A run of format 1, as an early release wrote it: read where it lies, and gone on with in a copy."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.build import Places, open_from
from flows.iteration import advance
from papo.runs import open_run
from tasks.calling import direct
from tasks.disk import LocalDisk
from tasks.journal import read_lines
from tasks.opening import close_run
from tasks.runfile import FORMAT, read_run_file
from tasks.status import all_runs, status_of
from tests.simulation.world import Silent

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A copy elsewhere in which nothing can be written."""
    runs = tmp_path / "elsewhere"
    runs.mkdir()
    shutil.copytree(FIXTURES / "format1", runs / "format1")
    folders = [runs, *(Path(folder) for folder, _, _ in os.walk(runs))]
    for folder in folders:
        folder.chmod(0o555)
    yield runs
    for folder in folders:
        folder.chmod(0o755)


def test_it_is_read_where_nothing_can_be_written(read_only: Path) -> None:
    before = sorted(read_only.rglob("*"))
    found = status_of(read_only / "format1")
    assert found is not None
    assert (found.run_id, found.origin, found.iteration, found.iterations) == ("format1", None, 3, 6)
    assert (found.checkpoint, found.state) == (3, "paused")
    assert found.ledger_head == "2334648cd006026c88ebb2c0598b45af2c06dc53fd8a826e913b97753d85b293"
    assert [run.run_id for run in all_runs(read_only)] == ["format1"]
    view = open_run(read_only / "format1")
    assert view.iterations == [0, 1, 2]
    assert view.rollouts(0).height == 8
    assert sorted(read_only.rglob("*")) == before


@pytest.mark.parametrize("name", ["format1", "renamed"])
def test_a_copy_elsewhere_is_gone_on_with(tmp_path: Path, name: str) -> None:
    """Neither its data nor its model's folder nor the folder that it was made in is on this machine."""
    folder = tmp_path / "runs" / name
    shutil.copytree(FIXTURES / "format1", folder)
    kept = {path: path.read_bytes() for path in folder.glob("iterations/0000[0-2]/commit.json")}
    run, state = open_from(None, run_id=name, reporter=Silent(), places=Places(runs=tmp_path / "runs"))
    try:
        assert advance(run, state, direct(run), limit=1) is None
    finally:
        close_run(run)
    found, run_file = status_of(folder), read_run_file(LocalDisk(folder))
    assert found is not None
    assert run_file is not None
    assert (found.iteration, found.lineage, found.run_id) == (4, 0, name)
    assert (run_file.origin, run_file.format) == ((), 1) if name == "format1" else (("format1",), FORMAT)
    assert {path: path.read_bytes() for path in kept} == kept
    events = [line["event"] for line in read_lines((folder / "events.jsonl").read_bytes())]
    assert "inexact_replay" not in events
