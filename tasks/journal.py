"""What happened when: `events.jsonl` and `metrics.jsonl`. Unchained, for they hold times. MLflow copies the latter.

A metrics line may be written again by a later attempt at the same iteration: the last one counts. Numbers that are not
finite are spelled as strings (`papo.spelling`); null is a figure that there was none of.
"""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from papo.spelling import metrics_of, spelled
from tasks.clock import Clock
from tasks.disk import Disk
from tasks.history import History

_LINE = TypeAdapter(dict[str, Any])
EVENTS = "events.jsonl"
METRICS = "metrics.jsonl"
EVALUATED = "evaluated"
"""The event that an evaluation is told by."""


class Journal:
    def __init__(self, disk: Disk, clock: Clock, *, attempt: int) -> None:
        self._disk = disk
        self._clock = clock
        self._common = {"attempt": attempt, "host": socket.gethostname(), "pid": os.getpid()}

    def event(self, kind: str, **fields: Any) -> None:
        told = {name: spelled(field) for name, field in fields.items()}
        self._append(EVENTS, {"event": kind, "time": self._clock.now(), **self._common, **told})

    def metrics(self, iteration: int, values: dict[str, float | int | bool | None]) -> None:
        told = {name: spelled(number) for name, number in values.items()}
        self._append(METRICS, {"iteration": iteration, "time": self._clock.now(), "values": told})

    def mend(self, commits: History) -> int:
        """Write the lines that committed iterations lack, by their commits: a line is not on the disk before the commit
        is, and a journal can be lost. Returns how many there were."""
        data = self._disk.read(METRICS) if self._disk.exists(METRICS) else b""
        told = {line["iteration"] for line in metrics_of(data)}
        lost = [index for index in range(len(commits)) if index - 1 not in told]
        for index in lost:
            self.metrics(index - 1, commits[index].summary)
        return len(lost)

    def _append(self, path: str, line: dict[str, Any]) -> None:
        # The leading newline ends a line that a dead writer may have left torn; readers skip blank and broken lines.
        torn = self._disk.exists(path) and not self._disk.read_tail(path, 1).endswith(b"\n")
        self._disk.append(path, (b"\n" if torn else b"") + json.dumps(line, allow_nan=False).encode() + b"\n")


def read_lines(data: bytes) -> list[dict[str, Any]]:
    """The whole lines of a journal, in order."""
    lines: list[dict[str, Any]] = []
    for line in data.splitlines():
        try:
            lines.append(_LINE.validate_json(line))
        except ValidationError:
            continue
    return lines


def read_events(path: Path, *kinds: str) -> Iterator[dict[str, Any]]:
    """The whole events of some kinds, in order. Of a long run's journal only those lines are parsed, one at a time."""
    begins = tuple(json.dumps({"event": kind})[:-1].encode() for kind in kinds)
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if line.startswith(begins):
                yield from read_lines(line)
