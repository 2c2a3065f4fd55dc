"""One iteration, and a run as a chain of them: what is done in which order. The orchestrator is only a way to call."""

from typing import Any, Protocol

from schemas.records import GENESIS, IterationState
from tasks.advantage import advantage
from tasks.checkpoint import checkpoint
from tasks.checkpoints import checkpoint_due
from tasks.evaluate import evaluate, evaluation_due, note_evaluation
from tasks.finish import after_update, finish
from tasks.generate import generate
from tasks.genesis import first_state, held_out, prepare
from tasks.holding import StateChanged, holds
from tasks.logprobs import logprobs
from tasks.run import Run
from tasks.sample import sample
from tasks.score import score
from tasks.stage import Stage
from tasks.stopping import stop_reason
from tasks.update import update
from tasks.verify import verify


class Call(Protocol):
    """How a stage is run: directly, or as a Prefect task named `00007/generate`."""

    def __call__(self, stage: Stage[Any, Any], iteration: int, **references: Any) -> Any: ...


def genesis(run: Run, call: Call) -> IterationState:
    """Prepare the data, open the first policy, measure it, and commit that as what everything follows from."""
    at = GENESIS
    prepared = call(prepare, at)
    prompts = call(held_out, at, prepared=prepared)
    state = call(first_state, at)
    evaluations = call(evaluate, at, state=state, held_out=prompts)
    call(finish, at, after=state, made=[*prepared, *prompts], updated=None, evaluations=evaluations)
    call(checkpoint, at, state=state)
    return state


def iteration(run: Run, state: IterationState, call: Call) -> IterationState:
    """sample → generate → verify → score → advantage → update → evaluate → commit → checkpoint."""
    at = state.iteration
    prompts = call(sample, at, state=state)
    rollouts = call(generate, at, state=state, prompts=prompts)
    outcomes = call(verify, at, state=state, prompts=prompts, rollouts=rollouts)
    scores = call(score, at, state=state, prompts=prompts, rollouts=rollouts, outcomes=outcomes)
    old = call(logprobs, at, state=state, prompts=prompts, rollouts=rollouts)
    credit = call(advantage, at, state=state, rollouts=rollouts, outcomes=outcomes, scores=scores)
    updated = call(update, at, state=state, prompts=prompts, rollouts=rollouts, logprobs=old, advantages=credit)
    after = after_update(run, state, updated)
    held_out_rows = run.held_out if evaluation_due(run, after.iteration) else []
    evaluations = call(evaluate, at, state=after, held_out=held_out_rows)
    made = [prompts, *rollouts, *outcomes, *scores, *old, credit]
    call(finish, at, after=after, made=made, updated=updated, evaluations=evaluations)
    if checkpoint_due(run, after.iteration):
        call(checkpoint, at, state=after)
    return after


def advance(run: Run, state: IterationState | None, call: Call, *, limit: int | None = None) -> str | None:
    """Advance a run to its horizon, or by `limit` iterations. Returns why it stopped before, or None."""
    done, changed = 0, False
    while True:
        try:
            state = state or genesis(run, call)
            if changed and holds(run, state):
                # What a new lineage starts from is kept, or the next crash would replay it to other weights again.
                call(checkpoint, state.iteration, state=state)
            changed = False
            reason = stop_reason(run.configs(state.iteration), run.commits)
            if reason is not None or state.iteration >= run.horizon or done == limit:
                closing(run, state, call)
                return reason
            state = iteration(run, state, call)
            done += 1
        except StateChanged as change:
            state, changed = change.state, True


def closing(run: Run, state: IterationState, call: Call) -> None:
    """Leave a measurement and a checkpoint of where the run stands, so that going on needs no replay."""
    at = state.iteration - 1
    if not evaluation_due(run, state.iteration):
        call(note_evaluation, at, state=state, evaluations=call(evaluate, at, state=state, held_out=run.held_out))
    call(checkpoint, at, state=state)
