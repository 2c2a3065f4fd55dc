"""The papo command with the simulation's scripted engine: a whole run in about a second, to be killed.

    python -m tests.drills.scripted train CONFIG --direct --run-id X --runs DIR

Everything but the engine is real: command line, config, folder, lock, journal, signals. Environment:

    DRILL_KILL_AT   disk operation before which the process sends itself SIGKILL, with ~ for every number and hash:
                    "rename iterations/~/rollouts-~.parquet"
    DRILL_LOG       file that takes the disk operations, one a line
    DRILL_PAUSE     seconds that the engine takes for each thing it is asked for
"""

import multiprocessing
import os
import re
import signal
import sys
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, ClassVar

from flows import build
from flows.cli import app
from papo.engines.settings import EngineSettings
from tasks.disk import LocalDisk
from tests.simulation.engine import ScriptedEngine

COUNTED = (
    "write", "write_at", "append", "truncate", "sync", "sync_folder", "rename", "link", "remove", "remove_tree",
    "make_folder",
)  # fmt: skip
VARYING = re.compile(r"[0-9a-f]{8,}|\d{4,}")


class CountingDisk(LocalDisk):
    """Kills its process before an operation, as DRILL_KILL_AT says."""

    log: ClassVar[list[str]] = []

    def __getattribute__(self, name: str) -> Any:
        if name in COUNTED:
            return lambda *args: self._counted(name, *args)
        return super().__getattribute__(name)

    def _counted(self, name: str, *args: Any) -> Any:
        # The last argument that is a path names what comes into being.
        target = [argument for argument in args if isinstance(argument, str)][-1]
        operation = VARYING.sub("~", f"{name} {target}")
        self.log.append(operation)
        if operation == os.environ.get("DRILL_KILL_AT"):
            os.kill(os.getpid(), signal.SIGKILL)
        return getattr(super(), name)(*args)


class PausingEngine(ScriptedEngine):
    def _call(self) -> None:
        time.sleep(float(os.environ.get("DRILL_PAUSE", "0")))
        super()._call()


class _engines:
    """Stands in for `flows.build._engine_in`."""

    def __init__(self, logs: Path, pid_file: Path | None) -> None:
        self._disk = LocalDisk(logs.parent)

    def __call__(self, settings: EngineSettings) -> ScriptedEngine:
        return PausingEngine(self._disk)


def main(arguments: Sequence[str]) -> None:
    build.LocalDisk = CountingDisk
    build._engine_in = _engines
    try:
        app(list(arguments))
    finally:
        if log := os.environ.get("DRILL_LOG"):
            Path(log).write_text("\n".join(CountingDisk.log))


def _child(arguments: Sequence[str], environment: dict[str, str], output: str) -> None:
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.environ.update(environment)
    # Python ignores what a fork server's children would do at Ctrl-C; a command does not.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(arguments)


def start(arguments: Sequence[str], output: Path, **environment: str) -> BaseProcess:
    """The command as a process of its own: forked from one that has imported everything and started no thread."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.drills.scripted"])
    named = {f"DRILL_{name.upper()}": value for name, value in environment.items()}
    process = context.Process(target=_child, args=(list(arguments), named, str(output)))
    process.start()
    return process


if __name__ == "__main__":
    main(sys.argv[1:])
