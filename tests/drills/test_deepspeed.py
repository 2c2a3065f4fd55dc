"""The same with the real engine: a command that trains by DeepSpeed is killed, loses its engine, and is interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from papo.engines.reaping import start_time
from tasks.disk import LocalDisk
from tasks.journal import read_lines
from tasks.lock import is_held
from tasks.status import RunStatus, status_of
from tasks.store import RunStore
from tests.drills.runs import wait_until

SFT: dict[str, Any] = {
    "name": "drill",
    "model": {"kind": "tiny_qwen2", "hidden_size": 32, "layers": 1, "heads": 2, "kv_heads": 1, "intermediate_size": 64},
    "steps": 8,
    "batch_size": 16,
    "phases": [{"share": 1.0, "data": {"kind": "chains", "count": 64}}],
    "optimizer": {"learning_rate": 5.0e-3},
}
RUN: dict[str, Any] = {
    "iterations": 4,
    "prompts_per_iteration": 4,
    "data": {
        "train": {"kind": "chains", "count": 64},
        "evaluation": {"kind": "chains", "count": 16, "split": "heldout"},
    },
    "model": {"cold_start": "sft.yaml"},
    "sampling": {"num_generations": 4, "max_prompt_length": 16, "max_completion_length": 32},
    "reward": {"outcome": {"kind": "answer_match", "extract": ["answer_tag"]}, "format_weight": 0.1},
    "scorer": {"kind": "chain_rubric"},
    "optimizer": {"learning_rate": 1.0e-3},
    # The barely trained policy earns nothing; an entropy bonus has a gradient all the same, so that updates are taken.
    "algorithm": {"entropy_coeff": 0.01},
    "engine": {"shard_size": 8},
    "evaluation": {"every": 2},
    "checkpoint": {"every": 2},
    "stop": {"all_truncated": 99},
    "tracking": {"mlflow": "off"},
}


@dataclass
class Trained:
    """A run by DeepSpeed, through the installed command."""

    home: Path
    name: str

    @property
    def folder(self) -> Path:
        return self.home / "runs" / self.name

    @property
    def output(self) -> Path:
        return self.home / f"{self.name}.out"

    @property
    def status(self) -> RunStatus:
        found = status_of(self.folder)
        assert found is not None
        return found

    @property
    def hashes(self) -> tuple[str | None, str | None]:
        return self.status.policy_sha256, self.status.ledger_head

    @property
    def optimizer_steps(self) -> list[int]:
        """After each commit, the genesis first."""
        states = [commit.state for commit in RunStore(LocalDisk(self.folder)).commits()]
        return [state.policy.fingerprint.optimizer_steps for state in states]

    @property
    def text(self) -> str:
        return self.output.read_text()

    def start(self, *more: str) -> "subprocess.Popen[bytes]":
        arguments = ["--direct", "--run-id", self.name, "--runs", "runs", "--models", "models", *more]
        with self.output.open("wb") as output:
            return subprocess.Popen(
                [Path(sys.executable).with_name("papo"), "train", "drill.yaml", *arguments],
                cwd=self.home, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def run(self) -> int:
        return self.start().wait(300)

    def events(self, kind: str) -> list[dict[str, Any]]:
        path = self.folder / "events.jsonl"
        lines = read_lines(path.read_bytes()) if path.exists() else []
        return [line for line in lines if line["event"] == kind]

    def makes(self, stage: str, iteration: int) -> bool:
        return any((line["stage"], line["iteration"]) == (stage, iteration) for line in self.events("making"))

    @property
    def ranks(self) -> dict[int, int | None]:
        """The engine's processes and when they were started."""
        try:
            return {pid: start_time(pid) for pid in json.loads((self.folder / "engine.json").read_text())["pids"]}
        except FileNotFoundError:
            return {}


def kill_when(run: Trained, happened: Callable[[], bool]) -> None:
    process = run.start()
    wait_until(lambda: happened() or process.poll() is not None)
    ranks = run.ranks
    process.kill()
    assert process.wait() == -signal.SIGKILL, f"it was over before it could be killed:\n{run.text}"
    wait_until(lambda: all(start_time(pid) != started for pid, started in ranks.items() if started), seconds=20)


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """The undisturbed run, whose cold start the others find in models/."""
    home = tmp_path_factory.mktemp("deepspeed")
    (home / "sft.yaml").write_text(yaml.safe_dump(SFT))
    (home / "drill.yaml").write_text(yaml.safe_dump(RUN))
    run = Trained(home, "straight")
    assert run.run() == 0, run.text
    assert len({commit["sha256"] for commit in run.events("committed")}) == 5
    assert run.optimizer_steps == [0, 1, 2, 3, 4]
    return run


def test_five_kills_end_in_the_weights_of_the_undisturbed_run(straight: Trained) -> None:
    run = Trained(straight.home, "killed")
    kill_when(run, lambda: len(run.events("opened")) == 1)
    kill_when(run, lambda: run.makes("generate", 0))
    kill_when(run, lambda: any(run.folder.glob("iterations/00001/advantage-*.json")))
    kill_when(run, lambda: run.makes("evaluate", 1))
    kill_when(run, lambda: any(run.folder.glob("checkpoints/.tmp-*")) or run.status.iteration >= 2)
    assert run.status.state == "crashed"
    assert run.run() == 0, run.text
    assert run.hashes == straight.hashes


def test_a_killed_engine_is_replaced_and_ctrl_c_leaves_nothing_behind(straight: Trained) -> None:
    run = Trained(straight.home, "wounded")
    process = run.start()
    wait_until(lambda: run.makes("generate", 1))
    for pid in run.ranks:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: run.makes("generate", 2) or process.poll() is not None)
    assert process.poll() is None, run.text
    ranks = run.ranks
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 3, run.text
    assert "papo resume wounded" in run.text
    assert "Traceback" not in run.text
    assert len(run.events("engine_died")) == 1
    assert not is_held(run.folder / "lock")
    assert run.status.state == "interrupted"
    time.sleep(0.2)
    assert all(start_time(pid) is None for pid in ranks), "a rank is left"

    assert run.run() == 0, run.text
    assert run.hashes == straight.hashes


def test_c_08_a_stopped_engine_is_started_again_and_stopped_twice_ends_the_start(straight: Trained) -> None:
    """SIGSTOP, of which nobody is told: the run notices by itself, and says how to go on where once was not enough."""
    run = Trained(straight.home, "stopped")
    process = run.start("--set", "engine.stall_seconds=3")
    wait_until(lambda: run.makes("generate", 1))
    stop(run.ranks)
    wait_until(lambda: len(run.events("stalled")) == 1)
    wait_until(lambda: run.makes("generate", 2) or process.poll() is not None)
    assert process.poll() is None, run.text
    first = run.ranks
    stop(first)
    wait_until(lambda: bool(run.ranks) and run.ranks != first)
    stop(run.ranks)
    assert process.wait(120) == 3, run.text
    assert "papo resume stopped" in run.text
    assert "Traceback" not in run.text
    assert run.status.state == "interrupted"
    assert run.run() == 0, run.text
    assert run.hashes == straight.hashes


def stop(ranks: dict[int, int | None]) -> None:
    for pid in ranks:
        os.kill(pid, signal.SIGSTOP)
