"""finish: end an iteration with its commit, then bring ledger and journal up to it."""

from dataclasses import asdict

import numpy as np
import polars as pl

from papo.metrics import summarize
from schemas.convert import scored_rollouts
from schemas.records import GENESIS, Commit, FrameRef, IterationState, LearnerState, LedgerEntry, Updated
from tasks.bysource import accuracy_by_source
from tasks.evaluate import evaluation_summary
from tasks.run import Run
from tasks.sample import next_cursor
from tasks.stage import stage

Numbers = dict[str, float | int | bool | None]
ORDER = ("prepare", "sample", "generate", "verify", "score", "logprobs", "advantage", "update", "evaluate")
"""Of the rows in a commit: the DAG's order, so that the ledger is what an uninterrupted run would have written."""


def after_update(run: Run, state: IterationState, updated: Updated) -> IterationState:
    """The state that the next iteration starts from."""
    return state.model_copy(
        update={
            "policy": LearnerState(version=state.policy.version + 1, fingerprint=updated.after),
            "cursor": next_cursor(run, state),
            "next_group": state.next_group + run.configs(state.iteration).prompts_per_iteration,
        }
    )


@stage(version=1)
def finish(
    run: Run, after: IterationState, made: list[FrameRef], updated: Updated | None, evaluations: list[FrameRef]
) -> Commit:
    """Commit the iteration that led to `after` (the genesis if there was no update).

    The order is what a crash is survived by: metrics (rewritten if this is repeated), commit (once), ledger (derived).
    """
    iteration = after.iteration - 1 if updated is not None else GENESIS
    summary = {**rollout_summary(run, made), **evaluation_summary(run, evaluations)}
    if updated is not None:
        summary |= {f"update/{name}": number for name, number in updated.stats.items()}
    entries = [LedgerEntry.of(ref) for ref in [*made, *evaluations]]
    if updated is not None:
        entries.append(LedgerEntry.of(updated))
    entries.sort(key=lambda entry: (ORDER.index(entry.stage), entry.shard))
    previous = run.commits[-1] if run.commits else None
    commit = Commit(
        iteration=iteration,
        entries=tuple(entries),
        state=after,
        summary=summary,
        config_sha256=run.configs(max(iteration, 0)).sha256,
        previous=previous.sha256 if previous else None,
        lineage=run.lineage,
        fencing_token=run.lease.token,
    )
    seconds = {f"seconds/{name}": spent for name, spent in run.seconds.items()}
    run.journal.metrics(iteration, {**summary, **seconds})
    run.store.commit(commit)
    run.commits.append(commit)
    run.ledger.append(commit)
    run.pending = None
    run.journal.event("committed", iteration=iteration, sha256=commit.sha256, ledger_head=run.ledger.head)
    run.reporter.iteration(iteration, {**summary, **seconds})
    run.iteration_seconds = sum(spent for name, spent in run.seconds.items() if name != "checkpoint")
    run.last_seconds = dict(run.seconds)
    run.seconds.clear()
    return commit


def rollout_summary(run: Run, made: list[FrameRef]) -> Numbers:
    """The figures of the iteration's rollouts and their credit; empty for the genesis."""
    frames = {
        stage: [ref for ref in made if ref.stage == stage] for stage in ("generate", "verify", "score", "advantage")
    }
    if not frames["generate"]:
        return {}
    rollouts, outcomes = _load(run, frames["generate"]), _load(run, frames["verify"])
    scores = _load(run, frames["score"]) if frames["score"] else None
    iteration = frames["generate"][0].iteration
    scored = scored_rollouts(rollouts, outcomes, scores, iteration=iteration)
    terms = run.configs(iteration).algorithm.advantage(scored)
    truncated = (rollouts["finish_reason"] == "length").to_numpy()
    summary: Numbers = dict(asdict(summarize(scored, terms, truncated=np.asarray(truncated, dtype=bool))))
    sources = _load(run, [ref for ref in made if ref.stage == "sample"]).select("group_id", "source")
    return summary | accuracy_by_source(outcomes.join(sources, on="group_id", how="left"))


def _load(run: Run, refs: list[FrameRef]) -> pl.DataFrame:
    return pl.concat([run.store.load(ref) for ref in refs])
