"""Stages as Prefect task runs named `00007/generate`, called in the main thread so that a cancel reaches them.

Prefect shows and schedules; it decides nothing. Results are not persisted and nothing is cached, because the ledger
says what is done already. There are no retries, because a stage that may be repeated (a dead engine) repeats inside
itself, with its state brought back first; a Prefect retry would repeat it on whatever the engine holds. There are no
tags, because a tagged task asks the server for a concurrency slot before it runs: a busy or dead server would fail it.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from prefect import Task
from prefect.cache_policies import NO_CACHE

from flows.iteration import Call
from schemas.canonical import canonical_json
from schemas.records import GENESIS, Record
from tasks.calling import perform
from tasks.holding import StateChanged
from tasks.run import Run
from tasks.stage import Stage

PARAMETER_BYTES = 100_000
"""What one parameter may weigh. Data goes by reference (path and hash), never through the orchestrator."""
REFERENCE_BYTES = 1_000
"""What one reference may weigh: a list of a thousand shards is no table."""


def prefect_call(run: Run) -> Call:
    """A `Call` that runs each stage as a task of the flow run at hand. `run` itself never crosses the border."""

    def call(stage: Stage[Any, Any], iteration: int, **references: Any) -> Any:
        check_references(stage.name, references)

        def body(references: dict[str, Any]) -> Any:
            try:
                return perform(run, stage, iteration, references)
            except StateChanged as change:
                # How a run goes on after an inexact replay, and no failure of this task.
                return change

        as_task: Callable[[dict[str, Any]], Any] = Task(
            body,
            name=stage.name,
            task_run_name=task_name(stage.name, iteration),
            retries=0,
            cache_policy=NO_CACHE,
            persist_result=False,
            log_prints=False,
        )
        made = as_task(references)
        if isinstance(made, StateChanged):
            raise made
        return made

    return call


def task_name(stage: str, iteration: int) -> str:
    """`00007/generate`; `genesis/prepare` for what precedes iteration 0."""
    return f"genesis/{stage}" if iteration == GENESIS else f"{iteration:05d}/{stage}"


def check_references(stage: str, references: dict[str, Any]) -> None:
    """Refuse what should not cross a task's border: data instead of a reference to it.

    Raises TypeError for anything but frozen records, plain scalars and sequences of them, ValueError for a parameter
    above `PARAMETER_BYTES` that is not just many references.
    """
    for name, given in references.items():
        items = cast("Sequence[Any]", given) if isinstance(given, list | tuple) else (given,)
        for item in items:
            if not isinstance(item, Record | str | int | float | None):
                raise TypeError(
                    f"Parameter {name!r} of stage {stage} is a {type(item).__name__}. Only records cross a task's "
                    "border: publish the data and pass its FrameRef."
                )
        size = sum(_size(item) for item in items)
        count = sum(len(getattr(item, "inputs", ())) or 1 for item in items)
        if size > max(PARAMETER_BYTES, REFERENCE_BYTES * count):
            raise ValueError(
                f"Parameter {name!r} of stage {stage} weighs {size} bytes; {PARAMETER_BYTES} are allowed. Publish the "
                "data and pass its FrameRef."
            )


def _size(item: Record | str | float | None) -> int:
    return len(canonical_json(item.model_dump(mode="json") if isinstance(item, Record) else item))
