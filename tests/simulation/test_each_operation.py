"""Not only random places: a crash at every operation that a run has, once each."""

from random import Random

import pytest

from tests.simulation.disk import Crash, Faults, SimDisk
from tests.simulation.schedules import check_ended, expected
from tests.simulation.world import Machine, undisturbed


@pytest.mark.parametrize("eighth", range(8))
def test_a_crash_at_each_single_operation(eighth: int) -> None:
    """BUG-103: at each stage boundary and between all the steps of each publication."""
    for at in range(1 + eighth, undisturbed()[0].operations + 1, 8):
        disk = SimDisk(Random(at), Faults(crash_at=at))
        machine = Machine()
        with pytest.raises(Crash):
            machine.run(disk)
        disk = disk.after_crash(writer="w1")
        machine.run(disk)
        check_ended(disk, expected(), named=f"operation {at}")
