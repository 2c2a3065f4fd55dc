"""A thousand crash schedules: whatever dies wherever, the run ends as if nothing had.

Each schedule is a function of its seed; a failure names it, and `check_schedule(seed)` replays it.
"""

from random import Random

import pytest

from tests.simulation.disk import Crash, Faults, SimDisk
from tests.simulation.schedules import check_ended, check_schedule, expected
from tests.simulation.world import Machine, undisturbed

SCHEDULES = 750
CHUNK = 25


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
        check_ended(disk, expected(), named=f"operation {at}")
