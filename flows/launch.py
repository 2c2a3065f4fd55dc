"""Train from the command line: through Prefect where a server can be had, without it where not.

How a run ended is what its own record says. A flow run whose bookkeeping failed after its body ended (the server went
away) is a success with a warning.
"""

import os
import threading
from collections.abc import Sequence
from typing import Any

from flows.build import Places, open_from
from flows.conduct import ENDED, Ended, conduct
from flows.reporters import Live
from flows.server import ServerInfo, server
from papo.errors import PapoError
from tasks.calling import direct
from tasks.disk import LocalDisk
from tasks.journal import EVENTS, read_lines
from tasks.tracking import tracked

TAIL = 1 << 16
LEAVE_SECONDS = 20.0


def launch(
    config: str | None,
    *,
    run_id: str | None,
    overrides: Sequence[str] = (),
    limit: int | None = None,
    amend: bool = False,
    reporter: Live,
    places: Places = Places(),
) -> Ended:
    """Advance a run in this process. Raises what opening or advancing it raises."""
    with server(places.runs) as found:
        reporter.message(found.message)
        given: dict[str, Any] = {"run_id": run_id, "overrides": list(overrides), "amend": amend}
        if found.url is None:
            return _without_prefect(config, limit=limit, reporter=reporter, places=places, **given)
        return _with_prefect(config, found, limit=limit, reporter=reporter, places=places, **given)


def _without_prefect(config: str | None, *, limit: int | None, reporter: Live, places: Places, **given: Any) -> Ended:
    run, state = open_from(config, reporter=reporter, places=places, **given)
    with tracked(run):
        return conduct(run, state, direct(run), reporter=reporter, limit=limit)


def _with_prefect(
    config: str | None, found: ServerInfo, *, limit: int | None, reporter: Live, places: Places, **given: Any
) -> Ended:
    # Only now: Prefect reads the server's address when it is imported.
    from flows.train import advancing, run_id_of  # noqa: PLC0415

    with advancing(reporter, places) as train:
        try:
            train(config=config, limit=limit, **given)
        except (PapoError, KeyboardInterrupt):
            raise
        except Exception as error:
            ended = how_it_ended(places, run_id_of(config, given["run_id"]))
            if ended is None:
                raise
            reporter.message(f"The run ended, but Prefect could not record it ({type(error).__name__}). Nothing is lost.")
            return ended
        ended = how_it_ended(places, run_id_of(config, given["run_id"]))
        assert ended is not None, "conduct() ends with an event"
        return ended


def how_it_ended(places: Places, run_id: str) -> Ended | None:
    """What this process wrote about the end of the run's body; None if it did not come to an end."""
    disk = LocalDisk(places.run(run_id))
    if not disk.exists(EVENTS):
        return None
    lines = [line for line in read_lines(disk.read_tail(EVENTS, TAIL)) if line.get("pid") == os.getpid()]
    last = next((line for line in reversed(lines) if line["event"] == ENDED), None)
    if last is None or "iteration" not in last:
        return None
    return Ended(state=last["state"], reason=last["reason"], iteration=last["iteration"])


def leave_within(seconds: float, code: int) -> None:
    """End this process with `code` even if libraries still wait for a dead server at exit. Call when all is done."""

    def leave() -> None:
        os._exit(code)

    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    timer.start()
