"""What ends or refuses a run besides a kill: a full disk, changed data, a second start, signals, a faulty config."""

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tasks.lock import FileLease, is_held
from tests.drills.runs import Scripted, wait_until

Make = Callable[[str], Scripted]


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGINT, "Stopped by Ctrl-C"), (signal.SIGTERM, "stopped by signal SIGTERM")]
)
def test_a_signal_ends_the_run_resumably(scripted: Make, number: signal.Signals, word: str) -> None:
    straight, run = scripted("straight"), scripted("stopped")
    assert straight.run() == 0, straight.text
    process = run.start(pause="0.2")
    wait_until((run.folder / "iterations/00001").exists)
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join()
    assert process.exitcode == 3, run.text
    assert word in run.text
    assert "papo resume stopped" in run.text
    assert "Traceback" not in run.text
    assert not is_held(run.folder / "lock")
    assert run.status.state == "interrupted"
    assert run.run() == 0, run.text
    assert run.hashes == straight.hashes


def test_a_second_start_of_the_same_run_is_refused_and_touches_nothing(scripted: Make) -> None:
    run = scripted("twice")
    process = run.start(pause="0.1")
    wait_until((run.folder / "iterations/00000").exists)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    try:
        before = contents(run.folder)
        second = Scripted(config=run.config, runs=run.runs, name="twice")
        assert second.run() == 3
        assert f"locked by pid {process.pid} on {socket.gethostname()}" in second.text
        assert contents(run.folder) == before
    finally:
        os.kill(process.pid, signal.SIGCONT)
    process.join()
    assert process.exitcode == 0
    assert run.status.state == "done"


def test_a_lock_that_this_very_test_holds_is_named(scripted: Make) -> None:
    run = scripted("held")
    assert run.run() == 0, run.text
    lease = FileLease(run.folder / "lock")
    before = contents(run.folder)
    assert run.run() == 3
    assert f"locked by pid {os.getpid()} on {socket.gethostname()}" in run.text
    assert contents(run.folder) == before
    lease.release()


def test_bug_134_a_changed_data_file_is_refused_by_name_on_resume(scripted: Make) -> None:
    run = scripted("changed")
    assert run.run("--limit", "1") == 0, run.text
    before = contents(run.folder)
    data = run.config.parent / "train.jsonl"
    whole = data.read_text()
    data.write_text(whole.replace('"answer": "', '"answer": "0', 1))
    assert run.run() == 2
    assert "data.train (train.jsonl) has changed" in run.text
    changed = {path.name for path, content in contents(run.folder).items() if before.get(path) != content}
    assert changed <= {"lock"}
    data.write_text(whole)
    assert run.run() == 0, run.text


def test_a_config_with_four_faults_names_all_four(scripted: Make) -> None:
    run = scripted("faulty")
    text = run.config.read_text()
    run.config.write_text(
        text.replace("iterations: 3", "iterations: 0")
        .replace("num_generations: 2", "num_generations: one")
        .replace("path: model", "path: nowhere")
        + "colour: red\n"
    )
    assert run.run() == 2
    for fault in ("iterations", "sampling.num_generations", "model.path", "colour"):
        assert fault in run.text, run.text
    assert "Traceback" not in run.text
    assert not run.folder.exists(), "a faulty config creates nothing"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that a run does not fit on beside what fills it."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=640k", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting needs root; tests/unit/tasks/test_checkpoints.py fills a disk without")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_bug_100_a_full_disk_stops_the_run_and_room_lets_it_go_on(scripted: Make, small_disk: Path) -> None:
    straight = scripted("straight")
    assert straight.run() == 0, straight.text
    filler = small_disk / "filler"
    filler.write_bytes(b"\0" * 470_000)
    run = Scripted(config=straight.config, runs=small_disk, name="full")
    stops = 0
    while (code := run.run()) != 0:
        assert code == 3, run.text
        assert "No space left on disk" in run.text
        assert "free some space, then resume" in run.text
        assert "papo resume full" in run.text
        assert "Traceback" not in run.text
        assert not is_held(run.folder / "lock")
        stops += 1
        filler.write_bytes(filler.read_bytes()[: -120_000 * stops])
    assert stops >= 1, "the run found room for all"
    assert run.hashes == straight.hashes
