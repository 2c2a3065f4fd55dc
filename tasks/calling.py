"""Running a stage: announce it, time it, hand it the run. The orchestrator adds to this, it does not replace it."""

from collections.abc import Callable
from typing import Any

from tasks.run import Run
from tasks.stage import Stage


def perform(run: Run, stage: Stage[Any, Any], iteration: int, references: dict[str, Any]) -> Any:
    """Run one stage in this thread and add its time to the iteration's."""
    run.stage, run.stalls = stage.name, 0
    run.lease.beat()
    run.reporter.stage(iteration, stage.name)
    started = run.clock.elapsed()
    try:
        return stage(run, **references)
    finally:
        spent = run.clock.elapsed() - started
        run.lease.beat()
        run.seconds[stage.name] = run.seconds.get(stage.name, 0.0) + spent


def direct(run: Run) -> Callable[..., Any]:
    """Call stages without any orchestrator."""

    def call(stage: Stage[Any, Any], iteration: int, **references: Any) -> Any:
        return perform(run, stage, iteration, references)

    return call
