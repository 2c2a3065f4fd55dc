"""Time, as something that the simulation can replace. Times are recorded in events and metrics, never in a frame."""

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def elapsed(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let that much time pass; a signal's handler may end it."""
        ...


class WallClock:
    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
