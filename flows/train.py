"""The training flow: one flow run advances a run by up to `limit` iterations and leaves it resumable.

Start, resume, Retry in the UI and the next scheduled run are the same thing. Deployed by module path, `flows.train.train`.
Importing this module imports Prefect: set PREFECT_API_URL first (`flows.server`).
"""

from typing import Any

from prefect import flow
from prefect.runtime import flow_run
from prefect.states import Cancelled

from flows.build import open_from
from flows.conduct import conduct
from flows.prefect_calls import prefect_call
from flows.reporters import reporter_for
from flows.shown import Shown
from papo.errors import Interrupted
from tasks.tracking import tracked


def run_name() -> str:
    """The run's id, as the flow run is called in the UI."""
    return run_id_of(flow_run.parameters.get("config"), flow_run.parameters.get("run_id"))


def run_id_of(config: str | None, run_id: str | None) -> str:
    """The id given, else the config file's name."""
    return run_id or (config or "run").rsplit("/", 1)[-1].rsplit(".", 1)[0]


@flow(name="train", flow_run_name=run_name, retries=0, persist_result=False, log_prints=False)
def train(
    config: str | None = None,
    run_id: str | None = None,
    overrides: list[str] = [],  # noqa: B006 - Prefect reads the schema from it and passes a copy
    limit: int | None = None,
    amend: bool = False,
) -> Any:
    """Open the run of `config` (or an existing one, by id), advance it, close it. How it ended, as a small record."""
    reporter = Shown(reporter_for())
    run, state = open_from(config, run_id=run_id, overrides=overrides, amend=amend, reporter=reporter)
    try:
        with tracked(run) as follower:
            reporter.attach(run, flow_run.id, links=follower.links)
            ended = conduct(run, state, prefect_call(run), reporter=reporter, limit=limit)
    except Interrupted as interrupted:
        return Cancelled(message=f"{interrupted}; the next start goes on from the last commit")
    return {"run_id": run.run_id, "state": ended.state, "iteration": ended.iteration, "reason": ended.reason}
