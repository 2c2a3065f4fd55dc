"""update: the optimizer steps of an iteration. Its output is memory until the next checkpoint, so it is recorded and
replayable rather than durable."""

from collections.abc import Callable
from typing import Any, Literal

from papo.engines.protocol import Engine
from papo.engines.requests import UpdateResult
from papo.spelling import spelled
from schemas.records import Batch, FrameRef, IterationState, Updated
from tasks.holding import using
from tasks.replay import UPDATE_VERSION, of_engine, update_request
from tasks.run import Run, key_of
from tasks.stage import stage


@stage(version=UPDATE_VERSION)
def update(run: Run, state: IterationState, batch: Batch, advantages: FrameRef) -> Updated:
    """One record: what went in, and what the weights and moments hash to afterwards."""
    config = run.configs(state.iteration)
    identity = config.identity
    made = recorded_or_made(
        run,
        state,
        name="update",
        version=update.version,
        inputs=(*batch.prompts, *batch.rollouts, *batch.logprobs, *batch.values, advantages),
        key_parts={
            "algorithm": {name: part for name, part in identity["algorithm"].items() if name != "advantage"},
            "optimizer": identity["optimizer"],
            "critic": config.critic_settings and config.critic_settings.model_dump(mode="json", exclude={"path"}),
            "kl_coef": state.kl_coef,
        },
        work=lambda engine, update: engine.update(update_request(run, update), run.progress),
    )
    _watch_gap(run, state.iteration, made, limit=config.gap_alarm)
    return made


def recorded_or_made(
    run: Run,
    state: IterationState,
    *,
    name: Literal["update", "train_prm"],
    version: int,
    inputs: tuple[FrameRef, ...],
    key_parts: dict[str, Any],
    work: Callable[[Engine, Updated], UpdateResult],
    groups: tuple[int, ...] | None = None,
) -> Updated:
    """The record of a change of what the engine holds: adopted if it was made before, else made by `work`.

    `work` gets the engine, which holds `state`, and the record as far as it is known.
    """
    config, iteration = run.configs(state.iteration), state.iteration
    key = key_of(
        stage=name,
        version=version,
        iteration=iteration,
        inputs=[ref.sha256 for ref in inputs],
        before=state.policy.fingerprint.model_dump(),
        temperature=config.sampling.temperature,
        threads=config.engine.threads,
        dtype=config.engine.dtype,
        seed=config.seed,
        **key_parts,
    )
    found = run.store.recorded_update(name, iteration, key)
    if found is None:
        before = state.policy.fingerprint
        planned = Updated(
            stage=name, version=version, iteration=iteration, key=key, before=before, after=before, inputs=inputs,
            groups=groups, rows=sum(ref.rows for ref in inputs if ref.stage == "generate"), stats={},
        )  # fmt: skip
        run.generator.rest()
        result = using(run, state, lambda engine: work(engine, planned))
        made = planned.model_copy(
            update={
                "after": of_engine(result.fingerprint),
                "stats": {figure: spelled(number) for figure, number in result.stats.items()},
            }
        )
        found = run.store.record_update(made)
        _note_shrinking(run, iteration, made.figures.get("micro_batch_size"))
    run.pending.append(found)
    return found


def _watch_gap(run: Run, iteration: int, made: Updated, *, limit: float | None) -> None:
    """Raise the alarm where sampler and trainer disagree by more than `limit` (BUG-051): it grows for days before a
    run is seen to fail by it."""
    gap = made.figures.get("sampler_logprob_gap_mean")
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
