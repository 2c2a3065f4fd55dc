"""Train from the command line: through Prefect where a server can be had, without it where not.

How a run ended is what its body says. A flow run whose bookkeeping failed after that (the server went away) is a
success with a warning.
"""

import os
import threading
from collections.abc import Sequence
from typing import Any

from flows.build import Places, open_from
from flows.caller import Caller, calling
from flows.conduct import Ended, conduct
from flows.reporters import Live
from flows.server import server
from tasks.calling import direct as direct_calls
from tasks.tracking import tracked


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
        if found.url is None:
            return _without_prefect(config, limit=limit, reporter=reporter, places=places, **given)
        return _with_prefect(config, Caller(reporter=reporter, places=places), limit=limit, **given)


def _without_prefect(config: str | None, *, limit: int | None, reporter: Live, places: Places, **given: Any) -> Ended:
    run, state = open_from(config, reporter=reporter, places=places, **given)
    with tracked(run):
        return conduct(run, state, direct_calls(run), reporter=reporter, limit=limit)


def _with_prefect(config: str | None, by: Caller, **given: Any) -> Ended:
    # Only now: Prefect reads the server's address when it is imported.
    from flows.train import train  # noqa: PLC0415

    with calling(by):
        try:
            train(config=config, **given)
        except BaseException as error:
            if by.ended is None:
                raise by.error or error from None
            by.reporter.message(f"The run is whole, but Prefect could not record its end ({type(error).__name__}).")
    assert by.ended is not None, "a body that raised nothing has ended"
    return by.ended


def leave_within(seconds: float, code: int) -> None:
    """End this process with `code` even if Prefect still waits for a dead server at exit. Call when all is done."""
    timer = threading.Timer(seconds, os._exit, args=(code,))
    timer.daemon = True
    timer.start()
