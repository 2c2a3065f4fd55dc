"""C-08: what counts as a stall, by a clock and processor times that the test moves."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from papo.engines.silence import Silence, processor_seconds, states_of


@dataclass
class Machine:
    time: float = 0.0
    spent: float = 0.0

    def silence(self) -> Silence:
        return Silence([1, 2], poll_seconds=5.0, elapsed=lambda: self.time, spent=self.processor)

    def processor(self, pids: Sequence[int]) -> float:
        assert tuple(pids) == (1, 2)
        return self.spent

    def passes(self, seconds: float, *, working: float = 0.0) -> None:
        self.time += seconds
        self.spent += seconds * working


def test_a_group_that_does_nothing_grows_silent() -> None:
    machine = Machine()
    silence = machine.silence()
    looks: list[float] = []
    for _ in range(4):
        machine.passes(5.0)
        looks.append(silence.look())
    assert looks == [5.0, 10.0, 15.0, 20.0]


@pytest.mark.parametrize("working", [1.0, 0.1, 0.02])
def test_a_group_that_a_busy_machine_makes_slow_is_not_silent(working: float) -> None:
    machine = Machine()
    silence = machine.silence()
    for _ in range(1000):
        machine.passes(5.0, working=working)
        assert silence.look() == 0.0


def test_threads_that_only_wake_up_now_and_then_are_no_work() -> None:
    machine = Machine()
    silence = machine.silence()
    machine.passes(5.0, working=0.001)
    assert silence.look() == 5.0


def test_work_ends_the_silence() -> None:
    machine = Machine()
    silence = machine.silence()
    for _ in range(100):
        machine.passes(5.0)
        silence.look()
    machine.passes(5.0, working=0.5)
    assert silence.look() == 0.0
    machine.passes(5.0)
    assert silence.look() == 5.0


def test_a_pause_of_the_owner_is_not_the_groups() -> None:
    """The owner was stopped for a day, or the machine slept: nobody listened, so nobody was silent."""
    machine = Machine()
    silence = machine.silence()
    machine.passes(86_400.0)
    assert silence.look() == 10.0


def test_a_child_that_has_ended_takes_its_time_along_and_is_no_silence() -> None:
    machine = Machine(spent=100.0)
    silence = machine.silence()
    machine.passes(5.0)
    machine.spent = 60.0
    assert silence.look() == 0.0


def test_processes_are_asked_for_their_time_and_state() -> None:
    assert processor_seconds([os.getpid()]) > 0.0
    assert processor_seconds([2**22 + 1]) == 0.0
    assert (
        states_of([os.getpid(), 2**22 + 1])
        == f"rank 0 (pid {os.getpid()}) is running, rank 1 (pid {2**22 + 1}) is gone"
    )
