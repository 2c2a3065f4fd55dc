"""A thousand crash schedules: whatever dies wherever, the run ends as if nothing had.

Each schedule is a function of its seed; a failure names it, and `run_schedule(seed)` replays it.
"""

from dataclasses import dataclass
from functools import cache
from random import Random

import pytest

from papo.errors import DiskFull, EngineDied, Fenced, LedgerMismatch
from tasks.store import RunStore
from tests.simulation.disk import Crash, Faults, SimDisk
from tests.simulation.world import Machine, undisturbed

SCHEDULES = 750
CHUNK = 25
OPERATIONS = 500
"""A little more than an undisturbed run has, so that a fault may also miss."""


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
    return Ended(commits=[commit.sha256 for commit in commits], ledger=disk.read("ledger.jsonl"), frames={path: disk.read(path) for path in paths})


def run_schedule(seed: int, *, ignore_sync: bool = False) -> SimDisk:
    """Start the run again and again under faults drawn from `seed`, then once without."""
    rng = Random(seed)
    disk = SimDisk(rng, Faults(ignore_sync=ignore_sync))
    machine = Machine()
    for life in range(rng.randrange(1, 5)):
        disk.faults = _faults(rng, disk, machine, life)
        disk.faults.ignore_sync = ignore_sync
        die_in = rng.randrange(12) if rng.random() < 0.3 else None
        try:
            machine.run(disk, die_in=die_in)
        except (Crash, DiskFull, EngineDied, Fenced, LedgerMismatch):
            pass
        except (OSError, LedgerMismatch):
            # Only a writer that was taken over may find its drafts swept away, or a ledger longer than what it had read.
            if not disk.faults_took_over:
                raise
        disk = disk.after_crash(Faults(ignore_sync=ignore_sync), writer=f"w{life + 1}")
    machine.run(disk)
    return disk


def _faults(rng: Random, disk: SimDisk, machine: Machine, life: int) -> Faults:
    disk.faults_took_over = False
    at = rng.randrange(1, OPERATIONS)
    match rng.choice(["crash", "crash", "crash", "full", "takeover", "takeover and crash"]):
        case "crash":
            return Faults(crash_at=at)
        case "full":
            return Faults(full_at=at, full_for=rng.randrange(1, 40))
        case kind:

            def take_over() -> None:
                disk.faults_took_over = True
                machine.run(disk.second_writer(f"second-{life}"))

            crash_at = at + rng.randrange(1, 30) if kind == "takeover and crash" else None
            return Faults(before={at: take_over}, crash_at=crash_at)


def check_schedule(seed: int) -> None:
    disk = run_schedule(seed)
    now, wanted = ended(disk), expected()
    assert now.commits == wanted.commits, f"seed {seed}: the commits are not what an undisturbed run has"
    assert now.ledger == wanted.ledger, f"seed {seed}: the ledger is not what an undisturbed run has"
    assert now.frames == wanted.frames, f"seed {seed}: a frame is not what an undisturbed run made"
    assert disk.made_again == [], f"seed {seed}: published shards were made again"


@pytest.mark.parametrize("first", range(0, SCHEDULES, CHUNK))
def test_every_crash_schedule_ends_as_the_undisturbed_run(first: int) -> None:
    for seed in range(first, first + CHUNK):
        check_schedule(seed)


@pytest.mark.parametrize("eighth", range(8))
def test_a_crash_at_each_single_operation(eighth: int) -> None:
    """BUG-103: not only random places: every operation of a run, once each."""
    for at in range(1 + eighth, undisturbed()[0].operations + 1, 8):
        disk = SimDisk(Random(at), Faults(crash_at=at))
        machine = Machine()
        with pytest.raises(Crash):
            machine.run(disk)
        disk = disk.after_crash(writer="w1")
        machine.run(disk)
        assert ended(disk) == expected(), f"operation {at}: {disk.log[-1]}"
        assert disk.made_again == []
