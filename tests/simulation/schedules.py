"""A schedule of faults as a function of a seed: the run is started again and again under them, then once without."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

from papo.errors import DiskFull, EngineDied, Fenced, LedgerMismatch
from papo.spelling import metrics_of
from tasks.store import RunStore
from tests.simulation.disk import Crash, Faults, SimDisk
from tests.simulation.world import Machine, undisturbed

OPERATIONS = 500
"""A little more than an undisturbed run has, so that a fault may also miss."""
Process = Callable[..., object]
"""One start of the run on a disk; takes `die_in`."""


@dataclass(frozen=True)
class Ended:
    commits: list[str]
    ledger: bytes
    frames: dict[str, bytes]


@cache
def expected() -> Ended:
    disk, _ = undisturbed()
    return ended(disk)


def ended(disk: SimDisk) -> Ended:
    commits = RunStore(disk).commits()
    paths = [entry.path for commit in commits for entry in commit.entries if entry.path]
    return Ended(
        commits=[commit.sha256 for commit in commits],
        ledger=disk.read("ledger.jsonl"),
        frames={path: disk.read(path) for path in paths},
    )


def operation_at(pattern: str) -> int:
    """The number of the first operation of an undisturbed run that looks like this."""
    log = undisturbed()[0].log
    return next(number for number, line in enumerate(log, start=1) if re.match(pattern, line))


def run_schedule(
    seed: int,
    *,
    ignore_sync: bool = False,
    process: Process | None = None,
    disk: SimDisk | None = None,
    operations: int = OPERATIONS,
) -> SimDisk:
    """Start the run again and again under faults drawn from `seed`, then once without. Returns the disk as it ends.

    `process` starts the run (by default a `Machine` of the simulation's config), on `disk` or a new one.
    """
    rng = Random(seed)
    process = process or Machine().run
    disk = disk.after_crash(writer="w0", rng=rng) if disk else SimDisk(rng)
    for life in range(rng.randrange(1, 5)):
        disk.faults = _faults(rng, disk, process, life, operations)
        disk.faults.ignore_sync = ignore_sync
        die_in = rng.randrange(12) if rng.random() < 0.3 else None
        stall_in = _stalls(Random(f"stalls {seed} {life}"))
        try:
            process(disk, die_in=die_in, stall_in=stall_in)
        except (Crash, DiskFull, EngineDied, Fenced):
            pass
        except (OSError, LedgerMismatch):
            # Only a writer that was taken over may find its drafts swept away, or a ledger longer than it had read.
            if not disk.faults_took_over:
                raise
        disk = disk.after_crash(Faults(ignore_sync=ignore_sync), writer=f"w{life + 1}")
    process(disk)
    return disk


def _stalls(rng: Random) -> tuple[int, ...]:
    """Of its own stream, so that the other faults of a seed stay what they are. Two stalls in a row end a process; from
    those farther apart, it goes on."""
    return tuple(rng.choice([0, 3, 9]) for _ in range(rng.randrange(1, 4))) if rng.random() < 0.2 else ()


def _faults(rng: Random, disk: SimDisk, process: Process, life: int, operations: int) -> Faults:
    disk.faults_took_over = False
    at = rng.randrange(1, operations)
    match rng.choice(["crash", "crash", "crash", "full", "takeover", "takeover and crash"]):
        case "crash":
            return Faults(crash_at=at)
        case "full":
            return Faults(full_at=at, full_for=rng.randrange(1, 40))
        case kind:

            def take_over() -> None:
                disk.faults_took_over = True
                process(disk.second_writer(f"second-{life}"))

            crash_at = at + rng.randrange(1, 30) if kind == "takeover and crash" else None
            return Faults(before={at: take_over}, crash_at=crash_at)


def check_ended(disk: SimDisk, wanted: Ended, *, named: str) -> None:
    """The run on `disk` is what an undisturbed one would be, and nothing durable was made or written twice."""
    now = ended(disk)
    assert now.commits == wanted.commits, f"{named}: the commits are not what an undisturbed run has"
    assert now.ledger == wanted.ledger, f"{named}: the ledger is not what an undisturbed run has"
    assert now.frames == wanted.frames, f"{named}: a frame is not what an undisturbed run made"
    told = [line["iteration"] for line in metrics_of(disk.read("metrics.jsonl"))]
    assert told == list(range(-1, len(now.commits) - 1)), f"{named}: the journal of metrics lacks an iteration"
    for path in disk.walk("exports"):
        if path.endswith("papo.json"):
            files = json.loads(disk.read(f"exports/{path}"))["files"]
            folder = os.path.dirname(f"exports/{path}")
            assert {name: disk.digest(f"{folder}/{name}")[0] for name in files} == files, f"{named}: a torn reference"
    check_once(disk, named=named)


def check_once(disk: SimDisk, *, named: str) -> None:
    assert disk.made_again == [], f"{named}: published shards were made again"
    assert disk.rewritten == [], f"{named}: commits were written twice"


def check_schedule(seed: int, *, ignore_sync: bool = False) -> None:
    check_ended(run_schedule(seed, ignore_sync=ignore_sync), expected(), named=f"seed {seed}")
