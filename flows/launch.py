"""Train from the command line: through Prefect where a server can be had, without it where not.

How a run ended is what its body says. A flow run whose bookkeeping failed after that (the server went away) is a
success with a warning.
"""

import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from flows.build import open_from
from flows.caller import Caller, calling
from flows.conduct import Ended, conduct, terminations
from flows.proposals import Places
from flows.reporters import Live
from flows.server import server
from tasks.calling import direct as direct_calls
from tasks.tracking import tracked

BOOKKEEPING_SECONDS = 20.0
AGAIN_SECONDS = 5.0


def launch(
    config: str | None,
    *,
    run_id: str | None,
    overrides: Sequence[str] = (),
    limit: int | None = None,
    amend: bool = False,
    direct: bool = False,
    reporter: Live,
    places: Places,
) -> Ended:
    """Advance a run in this process. Raises what opening or advancing it raises; `direct` leaves Prefect out."""
    given: dict[str, Any] = {"run_id": run_id, "overrides": list(overrides), "amend": amend}
    if direct:
        return _without_prefect(config, limit=limit, reporter=reporter, places=places, **given)
    reporter.message("Starting the Prefect server, or finding the one that runs …")
    with server(places.runs) as found:
        reporter.message(found.message)
        train = None if found.url is None else _flow(reporter)
        if train is None:
            return _without_prefect(config, limit=limit, reporter=reporter, places=places, **given)
        by = Caller(reporter=reporter, places=places)
        ended = _with_prefect(train, config, by, limit=limit, **given)
        return ended or _without_prefect(config, limit=limit, reporter=reporter, places=places, **given)


def _without_prefect(config: str | None, *, limit: int | None, reporter: Live, places: Places, **given: Any) -> Ended:
    with terminations():
        run, state = open_from(config, reporter=reporter, places=places, **given)
    with tracked(run):
        return conduct(run, state, direct_calls(run), reporter=reporter, limit=limit)


def _flow(reporter: Live) -> Callable[..., Any] | None:
    try:
        # Only now: Prefect reads the server's address when it is imported, and settings of its own from many places.
        from flows.train import train  # noqa: PLC0415
    except Exception as error:
        reporter.message(f"No Prefect for this run: it cannot be imported ({type(error).__name__}: {error}).")
        return None
    return train


def _with_prefect(train: Callable[..., Any], config: str | None, by: Caller, **given: Any) -> Ended | None:
    """How the run ended, or None if Prefect did not let it begin."""
    try:
        with calling(by), bounded_bookkeeping(by):
            train(config=config, **given)
    except BaseException as error:
        if not by.started and isinstance(error, Exception):
            by.reporter.message(
                f"No Prefect for this run: it did not take the flow run ({type(error).__name__}: {error})."
            )
            return None
        if by.ended is None:
            raise by.error or error from None
        by.reporter.message(f"The run is whole, but Prefect could not record its end ({type(error).__name__}).")
    assert by.ended is not None, "a body that raised nothing has ended"
    return by.ended


class Unrecorded(BaseException):
    """Prefect still waits for its server; nothing in it may catch this and wait once more."""


@contextmanager
def bounded_bookkeeping(by: Caller) -> Generator[None]:
    """Once the body is over, give Prefect `BOOKKEEPING_SECONDS` to record it, then interrupt what it waits for."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Unrecorded

    previous = signal.signal(signal.SIGALRM, interrupt)
    # Again and again: each interruption makes Prefect try to record that one.
    by.on_end = lambda: _alarm(BOOKKEEPING_SECONDS, AGAIN_SECONDS)
    try:
        yield
    finally:
        _alarm(0.0, 0.0)
        signal.signal(signal.SIGALRM, previous)


def _alarm(seconds: float, interval: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds, interval)


def leave_within(seconds: float, code: int) -> None:
    """End this process with `code` even if Prefect still waits for a dead server at exit. Call when all is done."""
    timer = threading.Timer(seconds, os._exit, args=(code,))
    timer.daemon = True
    timer.start()
