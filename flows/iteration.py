"""One iteration, and a run as a chain of them: what is done in which order. The orchestrator is only a way to call."""

from typing import Any, Protocol

from schemas.records import GENESIS, Batch, IterationState, Updated
from tasks.advantage import advantage
from tasks.batches import enough
from tasks.checkpoint import checkpoint
from tasks.checkpoints import checkpoint_due
from tasks.evaluate import evaluate, evaluation_due, note_evaluation
from tasks.finish import after_update, finish
from tasks.generate import generate
from tasks.genesis import first_state, held_out, prepare
from tasks.holding import StateChanged, holds
from tasks.implicit import implicit
from tasks.logprobs import logprobs
from tasks.refresh import refresh
from tasks.run import Run
from tasks.sample import sample
from tasks.score import score
from tasks.stage import Stage
from tasks.stopping import stop_reason
from tasks.train_prm import after_training, train_prm
from tasks.update import update
from tasks.values import values
from tasks.verify import verify


class Call(Protocol):
    """How a stage is run: directly, or as a Prefect task named `00007/generate`."""

    def __call__(self, stage: Stage[Any, Any], iteration: int, **references: Any) -> Any: ...


def genesis(run: Run, call: Call) -> IterationState:
    """What everything follows from: `first_policy`, kept."""
    state = first_policy(run, call)
    call(checkpoint, GENESIS, state=state)
    return state


def first_policy(run: Run, call: Call) -> IterationState:
    """Prepare the data, open the first policy, measure it, and commit that."""
    at = GENESIS
    prepared = call(prepare, at)
    prompts = call(held_out, at, prepared=prepared)
    state = call(first_state, at)
    evaluations = call(evaluate, at, state=state, held_out=prompts)
    call(finish, at, after=state, made=[*prepared, *prompts], evaluations=evaluations)
    return state


def iteration(run: Run, state: IterationState, call: Call) -> IterationState:
    """sample → generate → logprobs → verify → score → advantage → update → evaluate → commit → checkpoint."""
    at = state.iteration
    state = call(refresh, at, state=state)
    batch = gather(run, state, call)
    batch, trained = measure(run, state, batch, call)
    state = after_training(state, trained)
    credit = call(advantage, at, state=state, batch=batch)
    updated = call(update, at, state=state, batch=batch, advantages=credit)
    after = after_update(run, state, batch, updated)
    held_out_rows = run.held_out if evaluation_due(run, after.iteration) else []
    evaluations = call(evaluate, at, state=after, held_out=held_out_rows)
    updates = [made for made in (trained, updated) if made is not None]
    call(finish, at, after=after, made=[*batch.inputs, credit], batch=batch, updates=updates, evaluations=evaluations)
    if checkpoint_due(run, after.iteration):
        call(checkpoint, at, state=after)
    return after


def gather(run: Run, state: IterationState, call: Call) -> Batch:
    """Draw and judge rollouts, in rounds where only groups with a signal are kept."""
    at, batch = state.iteration, Batch()
    while not (batch.prompts and enough(run, state, batch)):
        prompts = call(sample, at, state=state, number=len(batch.prompts))
        rollouts = call(generate, at, state=state, prompts=prompts)
        said = call(logprobs, at, state=state, prompts=prompts, rollouts=rollouts)
        outcomes = call(verify, at, state=state, prompts=prompts, rollouts=rollouts)
        scores = call(score, at, state=state, prompts=prompts, rollouts=rollouts, outcomes=outcomes, logprobs=said)
        batch = batch.joined(
            Batch(prompts=(prompts,), rollouts=rollouts, logprobs=said, outcomes=outcomes, scores=scores)
        )
    return batch


def measure(run: Run, state: IterationState, batch: Batch, call: Call) -> tuple[Batch, Updated | None]:
    """The batch with what critic and implicit PRM say of it; the latter is trained before or after it is asked."""
    at, double = state.iteration, run.configs(state.iteration).algorithm.implicit_prm.prime_forward == "double"
    values_made = call(values, at, state=state, batch=batch)
    if double:
        trained = call(train_prm, at, state=state, batch=batch)
        scored = call(implicit, at, state=after_training(state, trained), batch=batch)
    else:
        scored = call(implicit, at, state=state, batch=batch)
        trained = call(train_prm, at, state=state, batch=batch)
    return batch.model_copy(update={"values": tuple(values_made), "implicit": tuple(scored)}), trained


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
