"""A thousand crash schedules: whatever dies wherever, the run ends as if nothing had.

Each schedule is a function of its seed; a failure names it, and `check_schedule(seed)` replays it.
"""

import pytest

from tests.simulation.schedules import check_schedule

SCHEDULES = 750
CHUNK = 25


@pytest.mark.parametrize("first", range(0, SCHEDULES, CHUNK))
def test_every_crash_schedule_ends_as_the_undisturbed_run(first: int) -> None:
    for seed in range(first, first + CHUNK):
        check_schedule(seed)
