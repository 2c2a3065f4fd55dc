"""When a process group has stalled: nothing is heard from it and it takes no processor time, for too long.

A busy machine makes a group slow but not silent: whatever it does takes processor time. What does not count is the time
in which this process was itself stopped or the machine asleep, because nobody listened then.
"""

import time
from collections.abc import Callable, Sequence

import psutil

POLL_SECONDS = 5.0
"""Between two looks at a group that is silent."""
IDLE_SHARE = 0.005
"""Processor seconds a second below which a process group does nothing: threads that only wait wake up now and then."""


class Silence:
    """Counts the seconds in which a process group did nothing, look by look."""

    def __init__(
        self,
        pids: Sequence[int],
        *,
        poll_seconds: float = POLL_SECONDS,
        elapsed: Callable[[], float] = time.monotonic,
        spent: Callable[[Sequence[int]], float] | None = None,
    ) -> None:
        """`spent`: processor seconds that the processes of `pids` have taken so far."""
        self.poll_seconds = poll_seconds
        self._pids = tuple(pids)
        self._elapsed = elapsed
        self._spent = spent or processor_seconds
        self._looked_at, self._spent_then = elapsed(), self._spent(self._pids)
        self._idle = 0.0

    def look(self) -> float:
        """Seconds without work up to now. Call it every `poll_seconds`: more than two of these between looks are a
        pause of the caller's own and count as two."""
        now, spent = self._elapsed(), self._spent(self._pids)
        passed, worked = now - self._looked_at, spent - self._spent_then
        self._looked_at, self._spent_then = now, spent
        # (Less than before: a child that had worked has ended.)
        is_idle = 0.0 <= worked < IDLE_SHARE * passed
        self._idle = self._idle + min(passed, 2 * self.poll_seconds) if is_idle else 0.0
        return self._idle


def processor_seconds(pids: Sequence[int]) -> float:
    """User and system time of the processes and of all their children that live."""
    spent = 0.0
    for process in _with_children(pids):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        spent += times.user + times.system
    return spent


def states_of(pids: Sequence[int]) -> str:
    """What the system says of each process: `rank 0 (pid 12) is stopped`."""
    states: list[str] = []
    for rank, pid in enumerate(pids):
        try:
            state = psutil.Process(pid).status()
        except psutil.Error:
            state = "gone"
        states.append(f"rank {rank} (pid {pid}) is {state}")
    return ", ".join(states)


def _with_children(pids: Sequence[int]) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for pid in pids:
        try:
            process = psutil.Process(pid)
            found += [process, *process.children(recursive=True)]
        except psutil.Error:
            continue
    return found
