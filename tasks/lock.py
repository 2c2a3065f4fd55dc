"""One writer a run: a lock that the kernel frees when its process dies, and a token that fences off one which lives on.

The flock covers one host. Everywhere else (network file systems, a paused process) commits are create-only, so a writer
that was taken over can repeat published bytes but never end an iteration twice.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pydantic import TypeAdapter

from papo.errors import RunLocked
from schemas.records import Commit

BEAT_SECONDS = 1.0
"""Least time between two signs."""
_HOLDER = TypeAdapter(dict[str, str | int])


class Lease(Protocol):
    @property
    def token(self) -> int:
        """Grows with each holder."""
        ...

    def raise_above(self, commits: Sequence[Commit]) -> None:
        """Never go below a token that was committed, even if the lock's own memory was lost."""
        ...

    def beat(self) -> None:
        """Leave a sign that the work moves on."""
        ...

    def release(self) -> None: ...


class FileLease:
    """An flock on `path`, whose content says who holds it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if not _acquire(self._descriptor):
            holder = read_holder(path)
            os.close(self._descriptor)
            raise RunLocked(
                f"The run in {path.parent} is locked by pid {holder.get('pid')} on {holder.get('host')}, which is "
                "advancing it now. Wait for it or stop it (its work so far is kept), then start again."
            )
        token = read_holder(path).get("token")
        # (A lock that says nothing of use: the commits will raise the token, see `raise_above`.)
        self.token = token + 1 if isinstance(token, int) else 1
        self._beaten = 0.0
        self._write()

    def raise_above(self, commits: Sequence[Commit]) -> None:
        self.token = max([self.token, *(commit.fencing_token + 1 for commit in commits[-1:])])
        self._write()

    def beat(self) -> None:
        # The file's own time: it costs one system call, changes no byte, and may be lost with the machine.
        if time.monotonic() - self._beaten >= BEAT_SECONDS:
            self._beaten = time.monotonic()
            os.utime(self._descriptor)

    def release(self) -> None:
        os.close(self._descriptor)

    def _write(self) -> None:
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "boot_id": boot_id(), "token": self.token}
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(holder).encode(), 0)
        os.fsync(self._descriptor)


def _acquire(descriptor: int) -> bool:
    # `status` holds the lock for an instant while it asks whether anybody does: give it time to let go.
    for pause in (0.05, 0.2, 0.0):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(pause)
    return False


def read_holder(path: Path) -> dict[str, str | int]:
    """Who wrote the lock last: pid, host, boot id, token; empty if nobody did."""
    try:
        return _HOLDER.validate_json(path.read_bytes())
    except (OSError, ValueError):
        return {}


def is_held(path: Path) -> bool:
    """Whether a live process holds the lock (on this host). It only reads, so any folder will do."""
    if not path.exists():
        return False
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def moved_at(path: Path) -> float:
    """When the holder last gave a sign that its work moves on, in seconds since the epoch."""
    return path.stat().st_mtime


def boot_id() -> str:
    """Names this boot of this machine, so that a pid of an earlier one is not taken for a living process."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"
