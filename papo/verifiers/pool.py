"""Killable worker processes that decide pairs, for callers in any thread.

Workers are started when they are needed and are plain `subprocess` children (nothing of the caller is forked), in a
session of their own. A pair that uses up its CPU seconds ends its worker; it is tried once more, alone, and is then
undefined: never wrong. Nothing is waited for without a deadline. In a batch a pair that takes longer than a first look
is put off until the others are decided; that look decides nothing but the order.
"""

import atexit
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from papo.verifiers.rules import Rules

Worker = subprocess.Popen[bytes]
ReplyStatus = Literal["ok", "unscorable", "timeout", "error", "put_off"]
WALL_SECONDS = 120.0
"""The wall clock's part of the limit, for a worker that is stopped or starved: undefined as well."""
MEMORY_BYTES = 2**30
MOST_WORKERS = 8
PAIRS = "papo.verifiers.worker"
FIXED = {"PYTHONHASHSEED": "0"}
"""So that the order of sets in a library is the same in every worker."""
FIRST_LOOK = 0.1
"""CPU seconds for a pair of a batch, before it has to wait for the others."""
MOST_PUT_OFF = 4096
_RULES = Rules()
_HASTE = threading.local()
_ROOT = str(Path(__file__).resolve().parents[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    same: bool | None
    canonical: str | None
    reason: str | None
    status: ReplyStatus


class PutOff(BaseException):
    """The pair takes longer than a first look: ask again, without haste. No Exception, as no reward is to handle it."""


@contextmanager
def in_haste() -> Generator[None]:
    """Within, in this thread, what takes longer than a first look raises PutOff."""
    _HASTE.on = True
    try:
        yield
    finally:
        _HASTE.on = False


class _Known:
    """A pair that takes long, which a batch may hold many times."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reply: Reply | None = None


class WorkerPool:
    """At most `size` workers that run `program`, a module, each with `cpu_seconds` for a pair."""

    def __init__(
        self,
        size: int,
        *,
        cpu_seconds: float,
        wall_seconds: float = WALL_SECONDS,
        program: str = PAIRS,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._command = ["-m", program, str(cpu_seconds), str(memory_bytes)]
        self._cpu_seconds = cpu_seconds
        self._wall_seconds = wall_seconds
        self._slots = threading.BoundedSemaphore(size)
        self._alone = threading.Lock()
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._long: dict[bytes, _Known] = {}

    def ask(self, reference: str, answer: str, rules: Rules = _RULES) -> Reply:
        """Decide a pair. Never raises for what the texts are; PutOff in haste only."""
        told = {"reference": reference, "answer": answer, "rules": asdict(rules)}
        request = _line(told)
        known = self._long.get(request)
        if known is not None and not getattr(_HASTE, "on", False):
            with known.lock:
                known.reply = known.reply or self._asked(request)
                return known.reply
        if known is None and (not getattr(_HASTE, "on", False) or self._cpu_seconds <= FIRST_LOOK):
            return self._asked(request)
        if known is None:
            with self._slots:
                found = self._attempt(_line(told | {"cpu_seconds": FIRST_LOOK}), self._worker())
            if found is not None and found.status != "put_off":
                return found
            with self._lock:
                if len(self._long) >= MOST_PUT_OFF:
                    self._long.clear()
                self._long[request] = _Known()
        raise PutOff

    def _asked(self, request: bytes) -> Reply:
        with self._slots:
            found = self._attempt(request, self._worker())
        if found is None:
            # Alone: in a fresh process, one at a time, and in nobody's way.
            with self._alone:
                found = self._attempt(request, self._started())
        reason = f"undecided after {self._cpu_seconds:g} CPU seconds, twice"
        return found or Reply(same=None, canonical=None, reason=reason, status="timeout")

    def rest(self) -> None:
        """End the workers that have nothing to do; the next pair starts new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._long.clear()
        for worker in idle:
            _end(worker)

    def _attempt(self, request: bytes, worker: Worker) -> Reply | None:
        """A worker's reply; None where it ended or stayed silent, and is gone."""
        try:
            line = _exchange(worker, request, time.monotonic() + self._wall_seconds)
        except BaseException:
            _end(worker)
            raise
        reply = None if line is None else Reply(**json.loads(line))
        if reply is None or reply.status == "timeout":
            _end(worker)
            return None
        with self._lock:
            self._idle.append(worker)
        return reply

    def _worker(self) -> Worker:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._started()

    def _started(self) -> Worker:
        path = os.pathsep.join(filter(None, (_ROOT, os.environ.get("PYTHONPATH"))))
        return subprocess.Popen(
            [sys.executable, *self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **FIXED},
            start_new_session=True,
        )


def _line(told: dict[str, Any]) -> bytes:
    return json.dumps(told).encode() + b"\n"


def _exchange(worker: Worker, request: bytes, deadline: float) -> bytes | None:
    """Send one line, receive one line; None where the worker ends or the deadline passes first."""
    if worker.stdin is None or worker.stdout is None:
        return None
    try:
        worker.stdin.write(request)
        worker.stdin.flush()
    except OSError:
        return None
    poll = select.poll()
    poll.register(worker.stdout, select.POLLIN | select.POLLHUP)
    received = b""
    while not received.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return None
        part = os.read(worker.stdout.fileno(), 65536)
        if not part:
            return None
        received += part
    return received


def _end(worker: Worker) -> None:
    worker.kill()
    for stream in (worker.stdin, worker.stdout):
        if stream is not None:
            try:
                stream.close()
            except OSError:
                continue
    worker.wait()


_POOLS: dict[tuple[str, float, int], WorkerPool] = {}
_LOCK = threading.Lock()


def processors() -> int:
    """How many processors this process may use, 8 at most: as many workers are worth having."""
    return min(MOST_WORKERS, len(os.sched_getaffinity(0)))


def shared_pool(cpu_seconds: float, *, program: str = PAIRS, memory_bytes: int = MEMORY_BYTES) -> WorkerPool:
    """The process's one pool with this program and these limits."""
    with _LOCK:
        made = WorkerPool(processors(), cpu_seconds=cpu_seconds, program=program, memory_bytes=memory_bytes)
        return _POOLS.setdefault((program, cpu_seconds, memory_bytes), made)


@atexit.register
def rest_all() -> None:
    """End every worker of this process that has nothing to do."""
    with _LOCK:
        pools = list(_POOLS.values())
    for pool in pools:
        pool.rest()
