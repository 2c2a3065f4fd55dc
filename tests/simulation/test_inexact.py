"""Engines whose replays are not bit-equal (a GPU, another machine): the run goes on, in a new recorded lineage."""

from random import Random

import pytest

from papo.errors import InexactReplay
from tasks.journal import read_lines
from tasks.store import RunStore
from tests.simulation.disk import Crash, Faults, SimDisk
from tests.simulation.schedules import check_once, operation_at, run_schedule
from tests.simulation.test_variants import config_of
from tests.simulation.world import Machine, config_with

SCHEDULES = 60
CHUNK = 15


def events(disk: SimDisk, kind: str) -> list[dict]:
    return [line for line in read_lines(disk.read("events.jsonl")) if line["event"] == kind]


@pytest.mark.parametrize("first", range(0, SCHEDULES, CHUNK))
def test_crashes_of_an_inexact_engine_lose_no_commit_and_repeat_none(first: int) -> None:
    opened = 0
    for seed in range(first, first + CHUNK):
        machine = Machine()
        disk = run_schedule(
            seed, process=lambda disk, machine=machine, **faults: machine.run(disk, inexact=True, **faults)
        )
        commits = RunStore(disk).commits()
        lineages = [commit.lineage for commit in commits]
        assert [commit.iteration for commit in commits] == [-1, 0, 1, 2], f"seed {seed}"
        assert lineages == sorted(lineages), f"seed {seed}: a lineage ended and went on"
        check_once(disk, named=f"seed {seed}")
        opened += lineages[-1] > 0
    assert opened > 0, "none of the schedules had an inexact replay before its last commit"


@pytest.mark.parametrize("variant", ["prime double", "critic", "reference refresh"])
def test_models_beside_the_policy_go_on_from_an_inexact_replay_too(variant: str) -> None:
    """Two recorded changes an iteration: either may come out otherwise, in the iteration at hand or before it."""
    inexact = 0
    for seed in range(25):
        machine = Machine(config_of(variant))
        disk = run_schedule(
            seed, process=lambda disk, machine=machine, **faults: machine.run(disk, inexact=True, **faults)
        )
        commits = RunStore(disk).commits()
        lineages = [commit.lineage for commit in commits]
        assert [commit.iteration for commit in commits] == [-1, 0, 1, 2], f"seed {seed}"
        assert lineages == sorted(lineages), f"seed {seed}: a lineage ended and went on"
        check_once(disk, named=f"{variant}, seed {seed}")
        inexact += len(events(disk, "inexact_replay"))
    assert inexact > 0


def crash_in_iteration(disk: SimDisk, machine: Machine, iteration: int) -> None:
    """Die in an iteration's sampling, with the updates since the newest checkpoint only in memory."""
    disk.faults = Faults(crash_at=operation_at(f"write iterations/{iteration:05d}/.*rollouts-0000"))
    with pytest.raises(Crash):
        machine.run(disk, inexact=True)


def test_a_replay_that_differs_opens_a_lineage_that_says_so() -> None:
    """The update of iteration 0 is lost (the next checkpoint would be of version 2) and replayed to other weights."""
    disk, machine = SimDisk(Random(0)), Machine()
    crash_in_iteration(disk, machine, 1)
    disk = disk.after_crash(writer="w1")
    before = RunStore(disk).commits()
    assert [commit.iteration for commit in before] == [-1, 0]

    machine.run(disk, inexact=True)
    commits = RunStore(disk).commits()
    (inexact,) = events(disk, "inexact_replay")
    assert inexact["iteration"] == 0
    assert inexact["recorded"] == before[1].state.policy.fingerprint.model_dump()
    assert commits[:2] == before, "history stands as it was committed"
    assert [commit.lineage for commit in commits] == [0, 0, 1, 1]
    replays = machine.engines[-1].updates
    assert len(replays) == 3, "one replay and the two iterations that were left"
    made = [line["iteration"] for line in events(disk, "making") if line["stage"] == "generate"]
    assert made.count(0) == 2, "two shards of rollouts, each made once"


def test_on_inexact_replay_stop_refuses_and_changes_nothing() -> None:
    disk, machine = SimDisk(Random(0)), Machine()
    crash_in_iteration(disk, machine, 1)
    disk = disk.after_crash(writer="w1")
    machine.config = config_with(on_inexact_replay="stop")
    before = RunStore(disk).commits()
    with pytest.raises(InexactReplay, match=r"iteration 0 gave weights .* on_inexact_replay: correct"):
        machine.run(disk, inexact=True)
    assert RunStore(disk).commits() == before

    machine.config = config_with(on_inexact_replay="correct")
    machine.run(disk.after_crash(writer="w2"), inexact=True)
