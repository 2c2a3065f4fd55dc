"""What happened when: `events.jsonl` and `metrics.jsonl`. Unchained, for they hold times. MLflow copies the latter.

A metrics line may be written again by a later attempt at the same iteration: the last one counts.
"""

import json
import math
import os
import socket
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tasks.clock import Clock
from tasks.disk import Disk

_LINE = TypeAdapter(dict[str, Any])
EVENTS = "events.jsonl"
METRICS = "metrics.jsonl"


class Journal:
    def __init__(self, disk: Disk, clock: Clock, *, attempt: int) -> None:
        self._disk = disk
        self._clock = clock
        self._common = {"attempt": attempt, "host": socket.gethostname(), "pid": os.getpid()}

    def event(self, kind: str, **fields: Any) -> None:
        self._append(EVENTS, {"event": kind, "time": self._clock.now(), **self._common, **fields})

    def metrics(self, iteration: int, values: dict[str, float | int | bool | None]) -> None:
        self._append(METRICS, {"iteration": iteration, "time": self._clock.now(), "values": _finite(values)})

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


def latest_metrics(data: bytes) -> list[dict[str, Any]]:
    """One line an iteration, the last that was written, in order of iterations."""
    by_iteration = {line["iteration"]: line for line in read_lines(data)}
    return [by_iteration[iteration] for iteration in sorted(by_iteration)]


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(number, float) and not math.isfinite(number) else number
        for name, number in values.items()
    }
