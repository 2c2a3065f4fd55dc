"""Runs that are killed and resumed: how they are started, and what must be equal at their end."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from tasks.status import RunStatus, status_of
from tests.drills.scripted import start

SECONDS = 120


@dataclass
class Scripted:
    """A run of the scripted engine, through the command line."""

    config: Path
    runs: Path
    name: str
    kills: int = 0
    said: list[str] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.runs / self.name

    @property
    def output(self) -> Path:
        return self.runs.parent / f"{self.name}.out"

    @property
    def status(self) -> RunStatus:
        found = status_of(self.folder)
        assert found is not None
        return found

    def start(self, *more: str, **environment: str) -> BaseProcess:
        self.output.unlink(missing_ok=True)
        arguments = ["train", str(self.config), "--direct", "--run-id", self.name, "--runs", str(self.runs), *more]
        return start(arguments, self.output, **environment)

    def run(self, *more: str, **environment: str) -> int:
        """The command's exit code; negative: the signal that ended it."""
        process = self.start(*more, **environment)
        process.join(SECONDS)
        assert process.exitcode is not None, f"{self.name} still runs:\n{self.text}"
        return process.exitcode

    def command(self, name: str, *more: str) -> int:
        """Another command on the run: resume, export. Its exit code."""
        self.output.unlink(missing_ok=True)
        process = start([name, self.name, *more, "--runs", str(self.runs)], self.output)
        process.join(SECONDS)
        assert process.exitcode is not None, f"{name} {self.name} still runs:\n{self.text}"
        return process.exitcode

    @property
    def text(self) -> str:
        return self.output.read_text() if self.output.exists() else ""

    @property
    def hashes(self) -> tuple[str | None, str | None, str]:
        status = self.status
        return status.policy_sha256, status.ledger_head, status.state


def wait_until(happened: Callable[[], bool], *, seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)
