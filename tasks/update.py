"""update: the optimizer steps of an iteration. Its output is memory until the next checkpoint, so it is recorded and
replayable rather than durable."""

import math

from schemas.records import Fingerprint, FrameRef, IterationState, Updated
from tasks.holding import using
from tasks.replay import UPDATE_VERSION, update_request
from tasks.run import Run, key_of
from tasks.stage import stage


@stage(version=UPDATE_VERSION)
def update(
    run: Run,
    state: IterationState,
    prompts: FrameRef,
    rollouts: list[FrameRef],
    logprobs: list[FrameRef],
    advantages: FrameRef,
) -> Updated:
    """One record: what went in, and what the weights and moments hash to afterwards."""
    config, iteration = run.configs(state.iteration), state.iteration
    inputs = (prompts, *rollouts, *logprobs, advantages)
    key = key_of(
        stage=update.name,
        version=update.version,
        iteration=iteration,
        inputs=[ref.sha256 for ref in inputs],
        before=state.policy.fingerprint.model_dump(),
        algorithm={name: part for name, part in config.identity["algorithm"].items() if name != "advantage"},
        optimizer=config.identity["optimizer"],
        temperature=config.sampling.temperature,
        threads=config.engine.threads,
        dtype=config.engine.dtype,
        seed=config.seed,
    )
    found = run.store.recorded_update(iteration, key)
    if found is None:
        request = update_request(run, iteration, inputs)
        run.generator.rest()
        result = using(run, state, lambda engine: engine.update(request, run.progress))
        after = result.fingerprint
        made = Updated(
            version=update.version,
            iteration=iteration,
            key=key,
            before=state.policy.fingerprint,
            after=Fingerprint(
                policy_sha256=after.policy_sha256,
                optimizer_sha256=after.optimizer_sha256,
                optimizer_steps=after.optimizer_steps,
            ),
            inputs=inputs,
            rows=sum(ref.rows for ref in rollouts),
            stats={name: _finite(number) for name, number in result.stats.items()},
        )
        found = run.store.record_update(made)
        _watch_gap(run, iteration, made, limit=config.gap_alarm)
        _note_shrinking(run, iteration, made.stats.get("micro_batch_size"))
    run.pending = found
    return found


def _watch_gap(run: Run, iteration: int, made: Updated, *, limit: float | None) -> None:
    """Raise the alarm where sampler and trainer disagree by more than `limit` (BUG-051): it grows for days before a
    run is seen to fail by it."""
    gap = made.stats.get("sampler_logprob_gap_mean")
    if limit is None or gap is None or gap <= limit:
        return
    run.journal.event("sampler_gap", iteration=iteration, mean=gap, limit=limit)
    run.reporter.message(
        f"Sampler and trainer disagree in iteration {iteration}: their log-probs are {gap:.3g} nats apart on average, "
        f"above gap_alarm {limit:g}. Look at the synced events in events.jsonl, at dtype and temperature; "
        "algorithm.rollout_correction weighs such tokens down."
    )


def _note_shrinking(run: Run, iteration: int, rows: float | int | bool | None) -> None:
    if rows is not None:
        run.journal.event("out_of_memory", iteration=iteration, micro_batch_size=rows)
        run.reporter.message(
            f"Memory ran out in the update of iteration {iteration}, which went on with micro-batches of {rows} rows. "
            f"Set engine.micro_batch_size={rows} to begin with them."
        )


def _finite(number: float | int | bool) -> float | int | bool | None:
    return number if math.isfinite(number) else None
