"""The training flow: one flow run advances a run by up to `limit` iterations and leaves it resumable.

Start, resume, Retry in the UI and the next scheduled run are the same thing. Deployed by module path,
`flows.train.train`. Importing this module imports Prefect: name the server first (`flows.server`).
"""

from typing import Any

from prefect import flow
from prefect.runtime import flow_run
from prefect.states import Cancelled

from flows.build import open_from
from flows.caller import Caller, caller
from flows.conduct import Ended, conduct, terminations
from flows.prefect_calls import prefect_call
from flows.proposals import Proposals
from flows.shown import Shown
from papo.errors import Interrupted
from tasks.tracking import tracked


def run_name() -> str:
    """The run's id, as the flow run is called in the UI."""
    given = flow_run.parameters
    return given.get("run_id") or str(given.get("config")).rsplit("/", 1)[-1].rsplit(".", 1)[0]


@flow(name="train", flow_run_name=run_name, retries=0, persist_result=False, log_prints=False)
def train(
    config: str | None = None,
    run_id: str | None = None,
    overrides: list[str] = [],  # noqa: B006 - Prefect reads the schema from it and passes a copy
    limit: int | None = None,
    amend: bool = False,
) -> Any:
    """Open the run of `config` (or an existing one, by id), advance it, close it. How it ended, as a small record."""
    by = caller()
    by.started = True
    try:
        by.ended = _advance(by, config, run_id=run_id, overrides=overrides, limit=limit, amend=amend)
    except BaseException as error:
        by.error = error
        if isinstance(error, Interrupted):
            return Cancelled(message=f"{error}; the next start goes on from the last commit")
        raise
    finally:
        by.on_end()
    return {"state": by.ended.state, "iteration": by.ended.iteration, "reason": by.ended.reason}


def _advance(by: Caller, config: str | None, *, limit: int | None, **given: Any) -> Ended:
    reporter = Shown(by.reporter)
    with terminations():
        run, state = open_from(config, reporter=reporter, places=by.places, **given)
    with tracked(run) as follower:
        reporter.attach(run, flow_run.id, where=follower.ui, by=Proposals(places=by.places.resolved()))
        return conduct(run, state, prefect_call(run), reporter=reporter, limit=limit)
