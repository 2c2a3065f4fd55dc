"""Where proofs are checked: the checker's programs, run in a sandbox; what is prepared once for a task."""

import os
import shutil
import subprocess
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import Generic, Protocol, TypeVar, runtime_checkable

from papo.rewards.codejudge import Undefined
from papo.rewards.prooftask import NoTask, ProofTask
from papo.sandbox import Isolation, Limits, Outcome, run
from papo.sandbox.isolation import SYSTEM
from papo.verifiers.pool import processors

Compiled = Mapping[str, bytes]
"""Files of the data set as the checker compiled them: the same for every completion."""
LONGEST_ERROR = 240
_SLOTS = threading.BoundedSemaphore(processors())
_ALONE = threading.Lock()
_KEPT = 256
T = TypeVar("T")


@runtime_checkable
class Checker(Protocol):
    """A proof checker; each method that runs it may raise Undefined where the host was too busy."""

    def task_fault(self, task: ProofTask) -> str | None:
        """Why its texts are no task, before anything is run."""
        ...

    def refusal(self, script: str) -> str | None:
        """Why a script is none, by its text alone."""
        ...

    def prepare(self, task: ProofTask, bench: "Bench") -> Compiled:
        """Compile preamble and statement. Raises NoTask."""
        ...

    def judge(self, script: str, task: ProofTask, compiled: Compiled, bench: "Bench") -> None:
        """Return if the script proves the statement. Raises Unproved."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """How the checker is run."""

    limits: Limits
    isolation: Isolation
    axioms: tuple[str, ...] = ()
    """Those that a proof may rest on."""
    libraries: tuple[str, ...] = ()
    """Lean: folders of compiled packages."""
    toolchain: str | None = None
    """Folder of an installation, with `bin` in it; None: what is on PATH."""

    def program(self, name: str) -> str:
        """The path of one of the checker's programs. Raises Undefined where it is not installed."""
        found = located(name, self.toolchain)
        if found is None:
            raise Undefined(False, f"{name} is not installed")
        return found

    def run(self, script: str, files: Mapping[str, bytes]) -> Outcome:
        """Run a shell script that finds `files` in `$program`. Raises Undefined where the host was too busy."""
        files = {**files, "run": f"program=$1\n{script}\n".encode()}
        argv = ["/bin/sh", "{program}/run", "{program}"]
        own = (*((self.toolchain,) if self.toolchain else ()), *self.libraries)
        readable = {path: path for path in own}
        outcome = run(argv, files=files, limits=self.limits, isolation=self.isolation, readable=readable)
        if outcome.ending == "busy":
            raise Undefined(True, "the host was too busy to run the checker")
        return outcome


def located(name: str, toolchain: str | None) -> str | None:
    """The path of a program that sandboxes can read, or None."""
    if toolchain is not None:
        path = os.path.join(toolchain, "bin", name)
        return path if os.access(path, os.X_OK) else None
    return shutil.which(name)


def readable(path: str) -> bool:
    """Whether a program inside a sandbox sees this file."""
    real = os.path.realpath(path)
    return any(real == folder or real.startswith(f"{folder}/") for folder in SYSTEM)


@cache
def version_of(path: str) -> str:
    """The first line of what a program says of its version."""
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, timeout=30, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"unknown ({type(error).__name__})"
    return said.stdout.decode(errors="replace").partition("\n")[0].strip()[:80]


def checked(checker: Checker, script: str, task: ProofTask, bench: Bench) -> None:
    """Return if the script proves the statement. A busy host is given a second try, alone.

    Raises Unproved, NoTask, Undefined.
    """
    compiled = prepared(checker, task, bench)
    twice(lambda: checker.judge(script, task, compiled, bench))


def prepared(checker: Checker, task: ProofTask, bench: Bench) -> Compiled:
    """The task's own files, compiled once for all its completions. Raises NoTask, Undefined."""
    key = (repr(checker), task, repr(bench))
    return _PREPARED.get(key, lambda: twice(lambda: checker.prepare(task, bench)))


def twice(judge: Callable[[], T]) -> T:
    """The result, with a second try, alone, where the host was too busy. Raises what `judge` raises."""
    try:
        with _SLOTS:
            return judge()
    except Undefined as first:
        if not first.args[0]:
            raise
    with _ALONE:
        return judge()


class _Once(Generic[T]):
    """Results by key, each made by one thread while others wait for it; what was undefined is made again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[Hashable, Future[T]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            future = self._made.get(key)
            mine = future is None
            if future is None:
                future = self._made[key] = Future()
                while len(self._made) > _KEPT:
                    self._made.popitem(last=False)
            self._made.move_to_end(key)
        if mine:
            self._make(key, future, make)
        return future.result()

    def _make(self, key: Hashable, future: "Future[T]", make: Callable[[], T]) -> None:
        try:
            future.set_result(make())
        except BaseException as error:
            future.set_exception(error)
            if isinstance(error, NoTask):
                return
            with self._lock:
                self._made.pop(key, None)


_PREPARED: _Once[Compiled] = _Once()


def said(outcome: Outcome, marks: tuple[str, ...] = ("Error:",)) -> str:
    """Why a checker's program did not end well, in a line: the limit it was over, or its first error."""
    if outcome.ending not in ("exit", "signal"):
        return f"{outcome.ending} limit"
    text = outcome.stderr.decode(errors="replace")
    places = [at for mark in marks if (at := text.find(mark)) >= 0]
    error = " ".join(text[min(places) if places else 0 :].split())[:LONGEST_ERROR]
    return error or f"{outcome.ending} {outcome.code}"
