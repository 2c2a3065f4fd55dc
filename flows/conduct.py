"""Conduct an open run to its end: advance it, say how it ended, leave nothing behind. With or without Prefect."""

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flows.iteration import advance
from flows.reporters import Live
from papo.errors import Interrupted, PapoError
from schemas.records import IterationState
from tasks.opening import close_run
from tasks.run import Run

ENDED = "ended"


@dataclass(frozen=True)
class Ended:
    """How an invocation ended: `done` at the horizon, `stopped` by a stop condition, `paused` at its limit."""

    state: str
    reason: str | None
    iteration: int


def conduct(
    run: Run, state: IterationState | None, call: Callable[..., Any], *, reporter: Live, limit: int | None = None
) -> Ended:
    """Advance `run` and close it. Whatever happens, an event says how it ended; the error goes on to the caller."""
    reporter.begin(state.iteration if state else 0, run.horizon)
    try:
        with terminations():
            reason = advance(run, state, call, limit=limit)
        iteration = run.head.state.iteration
        ended = Ended(
            state="stopped" if reason else "done" if iteration >= run.horizon else "paused",
            reason=reason,
            iteration=iteration,
        )
        run.journal.event(ENDED, state=ended.state, reason=reason, iteration=iteration)
        return ended
    except (KeyboardInterrupt, Interrupted):
        run.journal.event(ENDED, state="interrupted", reason="stopped by a signal")
        raise
    except BaseException as error:
        kind = "failed" if not isinstance(error, PapoError) or error.exit_code != 3 else "interrupted"
        run.journal.event(ENDED, state=kind, reason=f"{type(error).__name__}: {error}"[:2000])
        raise
    finally:
        reporter.end()
        close_run(run)


class _Signalled(KeyboardInterrupt):
    """Until it is out of the body, a signal is no Exception: whoever catches those (pandera's checks, rewards) would
    take it for a fault of what is at hand."""


@contextmanager
def terminations() -> Generator[None]:
    """SIGTERM (a scheduler's cancel) ends the run like Ctrl-C: cleanly, and resumable. Raises Interrupted."""

    def interrupt(number: int, frame: Any) -> None:
        raise _Signalled(f"stopped by signal {signal.Signals(number).name} (pid {os.getpid()})")

    try:
        previous = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:
        # Not in the main thread: whoever owns it decides about signals.
        yield
        return
    try:
        yield
    except _Signalled as stop:
        raise Interrupted(str(stop)) from None
    finally:
        signal.signal(signal.SIGTERM, previous)
