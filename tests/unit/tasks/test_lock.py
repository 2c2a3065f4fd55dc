"""One writer: the lock, who is named when it is taken, and what a dead or a taken-over writer can still do."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from papo.errors import Fenced, RunLocked
from tasks.lock import FileLease, boot_id, is_held, read_holder
from tasks.store import RunStore
from tests.unit.tasks.bench import Bench

HOLD = """
import sys, time
from pathlib import Path
from tasks.lock import FileLease
lease = FileLease(Path(sys.argv[1]))
print(lease.token, flush=True)
time.sleep(60)
"""


def test_a_second_writer_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    lease = FileLease(tmp_path / "lock")
    with pytest.raises(RunLocked) as caught:
        FileLease(tmp_path / "lock")
    assert f"locked by pid {os.getpid()} on {socket.gethostname()}" in str(caught.value)
    assert "then start again" in str(caught.value)
    assert caught.value.exit_code == 3
    lease.release()
    FileLease(tmp_path / "lock").release()


def test_the_token_grows_with_each_holder_and_never_falls_below_a_commit(tmp_path: Path, done: Bench) -> None:
    tokens: list[int] = []
    for _ in range(3):
        lease = FileLease(tmp_path / "lock")
        tokens.append(lease.token)
        lease.release()
    assert tokens == [1, 2, 3]
    (tmp_path / "lock").unlink()
    lost = FileLease(tmp_path / "lock")
    lost.raise_above([done.commits[-1].model_copy(update={"fencing_token": 7})])
    assert lost.token == 8
    assert read_holder(tmp_path / "lock")["token"] == 8
    lost.release()


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "1\n"
    assert is_held(path)
    with pytest.raises(RunLocked, match=f"pid {holder.pid} "):
        FileLease(path)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert not is_held(path)
    lease = FileLease(path)
    assert lease.token == 2
    assert read_holder(path) == {
        "pid": os.getpid(), "host": socket.gethostname(), "boot_id": boot_id(), "token": 2
    }  # fmt: skip
    lease.release()


def test_a_torn_lock_file_locks_nobody_out(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text('{"pid": 12')
    FileLease(path).release()
    assert json.loads(path.read_text())["token"] == 1


def test_looking_does_not_take_the_lock(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "lock")
    lease = FileLease(tmp_path / "lock")
    assert is_held(tmp_path / "lock")
    lease.release()
    assert not is_held(tmp_path / "lock")


def test_an_iteration_is_ended_once_whoever_tries_again(done: Bench) -> None:
    """A writer that was paused while another took over can repeat published bytes, but not a commit."""
    last = done.commits[-1]
    path = done.folder / "iterations/00002/commit.json"
    before = path.read_bytes()
    with pytest.raises(Fenced, match="committed by another writer"):
        RunStore(done.disk).commit(last.model_copy(update={"fencing_token": 0}))
    assert path.read_bytes() == before


def test_a_lock_is_free_after_a_start_that_failed(done: Bench) -> None:
    (done.folder / "iterations/00000/commit.json").unlink()
    with pytest.raises(Exception, match="commit"):
        done.run()
    assert not is_held(done.folder / "lock")
