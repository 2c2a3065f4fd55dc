"""C-06: whoever only looks leaves everything as it was."""

import json
import os
from pathlib import Path

import pytest

from tasks.disk import LocalDisk
from tasks.export import export_version
from tasks.looking import LookingDisk, NoLease
from tasks.status import status_of
from tests.simulation.engine import ScriptedEngine
from tests.unit.tasks.bench import Bench


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


@pytest.fixture
def below(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "a").write_bytes(b"first")
    (folder / "deep" / "er" / "b").write_bytes(b"second")
    return folder


def test_writes_are_seen_and_change_nothing(below: Path) -> None:
    before, disk = snapshot(below), LookingDisk(below)
    disk.append("a", b" and more")
    disk.write_at("deep/er/b", 0, b"S")
    disk.truncate("deep/er/b", 3)
    disk.write("deep/new", b"new")
    disk.link("deep/new", "deep/newer")
    with pytest.raises(FileExistsError):
        disk.link("deep/new", "a")
    assert disk.read("a") == b"first and more"
    assert disk.read_tail("a", 4) == b"more"
    assert disk.size("a") == 14
    assert disk.read("deep/er/b") == b"Sec"
    assert disk.names("deep") == ["er", "new", "newer"]
    assert disk.walk(".") == ["a", "deep/er/b", "deep/new", "deep/newer"]
    assert disk.digest("a") == LocalDisk(Path(disk.local("."))).digest("a")
    assert snapshot(below) == before


def test_what_is_removed_or_renamed_is_so_for_the_looker_only(below: Path) -> None:
    before, disk = snapshot(below), LookingDisk(below)
    disk.rename("a", "deep/a")
    assert not disk.exists("a")
    assert disk.read("deep/a") == b"first"
    disk.remove("deep/er/b")
    with pytest.raises(FileNotFoundError):
        disk.remove("deep/er/b")
    assert disk.names("deep/er") == []
    disk.remove_tree("deep")
    assert not disk.exists("deep/er")
    assert disk.names(".") == []
    disk.write("deep/er/b", b"again")
    assert disk.read("deep/er/b") == b"again"
    assert disk.walk("deep") == ["er/b"]
    assert snapshot(below) == before


def test_an_engine_reads_from_the_run_and_writes_elsewhere(below: Path) -> None:
    disk = LookingDisk(below)
    assert disk.local("deep/er/b") == str((below / "deep" / "er" / "b").resolve())
    output = Path(disk.local("scratch/output.parquet"))
    assert output.parent.is_dir()
    assert below not in output.parents


def test_an_export_leaves_no_trace_in_the_run(done: Bench, tmp_path: Path) -> None:
    """By replay, which writes the most, and while somebody else holds the lock of a folder without permissions."""
    before, status = snapshot(done.folder), status_of(done.folder)
    for path in [done.folder, *done.folder.rglob("*")]:
        os.chmod(path, 0o555 if path.is_dir() else 0o444)
    disk, output = LookingDisk(done.folder), tmp_path / "elsewhere" / "one"
    done.opened(
        lambda run: export_version(run, 1, output),
        disk=disk,
        lease=NoLease,
        engine=lambda settings: ScriptedEngine(disk),
    )
    for path in [done.folder, *done.folder.rglob("*")]:
        os.chmod(path, 0o755 if path.is_dir() else 0o644)
    now = status_of(done.folder)
    assert snapshot(done.folder) == before
    assert status is not None
    assert now is not None
    assert (now.state, now.reason) == (status.state, status.reason)
    assert json.loads((output / "papo.json").read_text())["version"] == 1
