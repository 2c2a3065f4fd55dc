"""The process that copies a run's journal to MLflow, however slow or dead that is. Started by `tasks.tracking` only.

    python -m tasks.mlflow_follower RUN_DIR --uri URI --experiment NAME [--artifacts LOCATION]

Its standard input is a pipe that only its owner holds: `finish STATUS` means that the run has ended, the end of the
pipe without it that the owner was killed. Either way what is left is copied, for a bounded time, and the process ends.
"""

import argparse
import fcntl
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tasks.journal import METRICS, read_lines
from tasks.mlflow_names import digest
from tasks.tracking_status import TrackingStatus, read_status, write_status

if TYPE_CHECKING:
    from tasks.mlflow_copy import MlflowCopy

POLL_SECONDS = 1.0
LONGEST_PAUSE = 30.0
PROBE_SECONDS = 3.0
STALL_SECONDS = 4.0
"""How long the end of a run waits for a server from which nothing comes."""
LOCAL_STALL_SECONDS = 60.0
"""The same for a database file: it is worked on, not waited for (its first use makes the tables)."""
ORPHAN_SECONDS = 8.0
"""How long all of the copying may last after the owner was killed."""


class Owner:
    """What is heard of the owner, and how long may still be worked once it has ended."""

    def __init__(self, *, stall: float) -> None:
        self.ended = threading.Event()
        self.status = "KILLED"
        self._stall = stall
        self._ended_at = 0.0
        self._progress_at = time.monotonic()
        threading.Thread(target=self._listen, daemon=True).start()

    def progress(self) -> None:
        """Something worked: the stall is counted from here."""
        self._progress_at = time.monotonic()

    def overdue(self) -> bool:
        if not self.ended.is_set():
            return False
        now = time.monotonic()
        orphaned = self.status == "KILLED" and now - self._ended_at > ORPHAN_SECONDS
        return orphaned or now - max(self._ended_at, self._progress_at) > self._stall

    def _listen(self) -> None:
        for line in sys.stdin:
            word, _, status = line.strip().partition(" ")
            if word == "finish":
                self.status = status
                break
        self._ended_at = time.monotonic()
        self.ended.set()


class Tail:
    """The journal's whole lines that are not copied yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.pending: list[dict[str, Any]] = []

    def read(self) -> None:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        self.pending += [line for line in read_lines(whole) if {"iteration", "time", "values"} <= line.keys()]


class Follower:
    def __init__(self, run_dir: Path, uri: str, experiment: str, artifacts: str | None) -> None:
        self._run_dir = run_dir
        self._uri = uri
        self._experiment = experiment
        self._artifacts = artifacts
        self._tail = Tail(run_dir / METRICS)
        self._copy: MlflowCopy | None = None
        self._failures = 0
        before = read_status(run_dir)
        known = before.mlflow_run_id if before is not None and before.uri == shown(uri) else None
        self._origin: str | None = None
        if before is not None and known is not None and not is_its_own(before, run_dir):
            self._origin, known = known, None
        self.status = TrackingStatus(
            state="starting", uri=shown(uri), experiment=experiment, mlflow_run_id=known, folder=place_of(run_dir)
        )
        self.owner = Owner(stall=LOCAL_STALL_SECONDS if is_local(uri) else STALL_SECONDS)

    def follow(self) -> None:
        """Copy until the owner has ended and nothing is left, or the time for it is over."""
        threading.Thread(target=self._watch, daemon=True).start()
        while True:
            ending = self.owner.ended.is_set()
            copied = self._attempt(self.owner.status if ending else None)
            if ending:
                return
            pause = POLL_SECONDS if copied else min(POLL_SECONDS * 2**self._failures, LONGEST_PAUSE)
            self.owner.ended.wait(pause)

    def _attempt(self, end: str | None) -> bool:
        """Copy what there is; `end` also closes the MLflow run. A failure is noted and is all there is to it."""
        try:
            self._tail.read()
            self._copy = self._copy or self._connect()
            if self._tail.pending:
                self.status.skipped += self._copy.push(self._tail.pending)
                self._tail.pending.clear()
                self.owner.progress()
            if end is not None:
                self._copy.end(end)
            self._failures = 0
            self._note("ok", None)
        except Exception as error:
            self._copy = None
            self._failures += 1
            self._note("degraded", f"{type(error).__name__}: {error}")
        return self._failures == 0

    def _connect(self) -> "MlflowCopy":
        if not is_local(self._uri):
            probe(self._uri)
            self.owner.progress()
        # Only now, for it takes seconds that a dead server is not worth.
        from tasks.mlflow_copy import MlflowCopy  # noqa: PLC0415

        self.owner.progress()
        origin = origin_of(self._run_dir)
        # A copy takes over the place of a run that was there before, but never its MLflow run.
        key = digest(":".join([socket.gethostname(), str(self._run_dir.resolve()), *origin]))
        copy = MlflowCopy(
            uri=self._uri, experiment=self._experiment, artifacts=self._artifacts,
            run_yaml=self._run_dir / "run.yaml", key=key, known=self.status.mlflow_run_id, origin=self._origin,
        )  # fmt: skip
        self.status.mlflow_run_id = copy.run_id
        if not is_local(self._uri):
            path = f"#/experiments/{copy.experiment_id}/runs/{copy.run_id}"
            self.status.run_url = f"{shown(self._uri).rstrip('/')}/{path}"
        self.owner.progress()
        return copy

    def _note(self, state: str, reason: str | None) -> None:
        self.status.state, self.status.reason, self.status.behind = state, reason, len(self._tail.pending)
        write_status(self._run_dir, self.status)

    def _watch(self) -> None:
        while not self.owner.overdue():
            time.sleep(0.2)
        self._note("degraded", self.status.reason or "MLflow did not answer in time at the end of the run")
        os._exit(0)


def place_of(run_dir: Path) -> str:
    """Stays the same while a folder is neither copied nor renamed, wherever it is mounted."""
    return f"{origin_and_id(run_dir)[-1]} {run_dir.stat().st_ino}"


def is_its_own(before: TrackingStatus, run_dir: Path) -> bool:
    """Whether what was noted of the MLflow run is of this folder; notes of an early release do not say."""
    return not origin_of(run_dir) if before.folder is None else before.folder == place_of(run_dir)


def origin_of(run_dir: Path) -> list[str]:
    """Names that the folder had before."""
    return origin_and_id(run_dir)[:-1]


def origin_and_id(run_dir: Path) -> list[str]:
    """The names that the folder had before, and the present one, by its run.yaml."""
    fields = yaml.safe_load((run_dir / "run.yaml").read_text())
    return [*map(str, fields.get("origin", [])), str(fields["run_id"])]


def is_local(uri: str) -> bool:
    """Whether the store is a file of this machine, so that slow means busy and not gone."""
    return uri.startswith(("sqlite:", "file:")) or "://" not in uri


def shown(uri: str) -> str:
    """The address without what is between `//` and `@`."""
    scheme, separator, rest = uri.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}" if separator else uri


def probe(uri: str) -> None:
    """Raises OSError if nobody answers at the address; any answer will do."""
    if not uri.startswith(("http://", "https://")):
        return
    try:
        with urllib.request.urlopen(f"{shown(uri).rstrip('/')}/health", timeout=PROBE_SECONDS):
            return
    except urllib.error.HTTPError:
        return


def main() -> None:
    """Take over from a follower that still ends, then follow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--uri", required=True)
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--artifacts")
    arguments = parser.parse_args()
    lock = os.open(arguments.run_dir / "tracking.lock", os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(lock, fcntl.LOCK_EX)
    Follower(arguments.run_dir, arguments.uri, arguments.experiment, arguments.artifacts).follow()
    # Not sys.exit: MLflow's threads must not keep an ended run's follower.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
