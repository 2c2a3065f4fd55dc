"""What crosses the process border, and who is known on the other side of it."""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pydantic import ValidationError

from papo.algorithm import PAPO
from papo.engines.messages import VERBS, Answer, Channel, Command, Tick, from_json, to_json
from papo.engines.reaping import reap, start_time, write_pid_file
from papo.engines.requests import Update
from papo.engines.settings import OptimizerSettings


def test_a_request_survives_the_border_as_json() -> None:
    request = Update(
        prompts=("p",),
        rollouts=("a", "b"),
        advantages="c",
        logprobs=(),
        algorithm=PAPO,
        optimizer=OptimizerSettings(max_grad_norm=None),
        temperature=0.7,
        seed=2**62,
    )
    kind, _ = VERBS["update"]
    assert from_json(kind, json.loads(json.dumps(to_json(kind, request)))) == request


def test_an_unknown_field_of_a_value_is_refused() -> None:
    with pytest.raises(ValidationError):
        from_json(OptimizerSettings, {"learning_rat": 1e-3})


def test_messages_come_whole_however_they_are_cut() -> None:
    ours, theirs = socket.socketpair()
    sender, receiver = Channel(ours), Channel(theirs)
    big = Command(verb="save", request="x" * 300_000)
    thread = threading.Thread(target=lambda: [sender.send(big), sender.send(Tick(done=1, total=2))])
    thread.start()
    assert receiver.receive() == big
    assert receiver.receive() == Tick(done=1, total=2)
    thread.join()
    sender.send(Answer(value=None))
    sender.close()
    assert receiver.receive() == Answer(value=None)
    assert receiver.receive() is None


def test_a_recorded_group_is_killed_only_while_it_is_the_same_process(tmp_path: Path) -> None:
    path = tmp_path / "pids.json"
    command = [sys.executable, "-c", "import time; time.sleep(100)"]
    stranger, ours = (subprocess.Popen(command, start_new_session=True) for _ in range(2))
    write_pid_file(path, [ours.pid, stranger.pid])
    record = json.loads(path.read_text())
    record["start_times"][1] += 1
    path.write_text(json.dumps(record))
    assert reap(path) == [ours.pid]
    assert ours.wait(10) == -9
    assert stranger.poll() is None
    assert not path.exists()
    write_pid_file(path, [stranger.pid])
    path.write_text(path.read_text().replace('"boot_id": "', '"boot_id": "x'))
    assert reap(path) == []
    stranger.kill()
    stranger.wait()


def test_a_torn_or_missing_record_names_nobody(tmp_path: Path) -> None:
    path = tmp_path / "pids.json"
    assert reap(path) == []
    path.write_text('{"pids": [1')
    assert reap(path) == []


def test_start_time_is_read_behind_any_command_name() -> None:
    assert start_time(os.getpid()) is not None
    assert start_time(2**22 + 1) is None
