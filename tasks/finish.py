"""finish: end an iteration with its commit, then bring ledger and journal up to it."""

from collections.abc import Sequence
from dataclasses import asdict

import polars as pl

from papo.correctness import is_predicted, named
from papo.metrics import BatchFigures, prm_figures, summarize
from papo.spelling import number_of
from schemas.records import GENESIS, Batch, Commit, FrameRef, IterationState, LearnerState, LedgerEntry, Updated
from tasks.batches import credited, kept_groups
from tasks.bysource import accuracy_by_source
from tasks.evaluate import evaluation_summary
from tasks.memory import peak_memory
from tasks.opinions import opinion_figures
from tasks.run import Run
from tasks.sample import after_rounds
from tasks.stage import stage

Numbers = dict[str, float | int | bool | None]
ORDER = (
    "prepare", "sample", "generate", "logprobs", "verify", "score", "values", "implicit", "train_prm", "advantage",
    "update", "evaluate",
)  # fmt: skip
"""Of the rows in a commit: the DAG's order, so that the ledger is what an uninterrupted run would have written."""


def after_update(run: Run, state: IterationState, batch: Batch, updated: Updated) -> IterationState:
    """The state that the next iteration starts from."""
    first, cursor = after_rounds(run, state, len(batch.prompts))
    return state.model_copy(
        update={
            "policy": LearnerState(version=state.policy.version + 1, fingerprint=updated.after),
            "cursor": cursor,
            "next_group": first,
            "kl_coef": _next_kl_coef(run, state, batch, updated),
        }
    )


@stage(version=1)
def finish(
    run: Run,
    after: IterationState,
    made: list[FrameRef],
    batch: Batch | None = None,
    updates: list[Updated] | None = None,
    evaluations: list[FrameRef] | None = None,
) -> Commit:
    """Commit the iteration that led to `after` (the genesis if there was no update).

    The order is what a crash is survived by: metrics (rewritten if this is repeated), commit (once), ledger (derived).
    """
    updates, evaluations = updates or [], evaluations or []
    iteration = after.iteration - 1 if updates else GENESIS
    summary = {**evaluation_summary(run, evaluations)}
    if batch is not None:
        summary = {**rollout_summary(run, run.head.state, batch), **summary}
    figures: Numbers = {}
    for updated in updates:
        summary |= {f"{updated.stage}/{name}": number for name, number in updated.figures.items()}
        figures |= {f"{updated.stage}/{name}": number_of(number) for name, number in updated.stats.items()}
    if after.kl_coef is not None:
        summary["kl_coef"] = after.kl_coef
    entries = [LedgerEntry.of(ref) for ref in [*made, *updates, *evaluations]]
    entries.sort(key=lambda entry: (ORDER.index(entry.stage), entry.shard))
    commit = Commit(
        iteration=iteration,
        entries=tuple(entries),
        state=after,
        summary=summary,
        config_sha256=run.config_hashes(iteration),
        previous=run.commits.sha256(-1) if run.commits else None,
        lineage=run.lineage,
        fencing_token=run.lease.token,
    )
    seconds = {f"seconds/{name}": spent for name, spent in run.seconds.items()}
    peak = peak_memory(run.engine)
    memory: Numbers = {} if peak is None else {"memory/engine_peak_bytes": peak}
    # The journal says of a figure that is not finite what it is; a record has no word for it.
    run.journal.metrics(iteration, {**summary, **figures, **seconds, **memory})
    run.store.commit(commit)
    run.commits.append(commit)
    run.ledger.append(commit)
    run.pending.clear()
    run.journal.event("committed", iteration=iteration, sha256=commit.sha256, ledger_head=run.ledger.head)
    run.reporter.iteration(iteration, {**summary, **seconds})
    run.iteration_seconds = sum(spent for name, spent in run.seconds.items() if name != "checkpoint")
    run.last_seconds = dict(run.seconds)
    run.pace.note(run.seconds)
    run.seconds.clear()
    return commit


def rollout_summary(run: Run, state: IterationState, batch: Batch) -> Numbers:
    """The figures of the iteration's rollouts and their credit; advantages are those of the groups that are kept."""
    made = credited(run, state, batch)
    truncated = made.scored.truncated
    assert truncated is not None, "rollouts say how they ended"
    summary: Numbers = dict(asdict(summarize(made.scored, made.terms, truncated=truncated)))
    summary |= prm_figures(made.scored) if batch.implicit else {}
    sources, outcomes = _load(run, batch.prompts).select("group_id", "source"), _load(run, batch.outcomes)
    summary |= accuracy_by_source(outcomes.join(sources, on="group_id", how="left"))
    summary |= {name: number for name, number in _batch_figures(run, state, batch).items() if number is not None}
    summary |= opinion_figures(run.configs(state.iteration), outcomes)
    return named(summary, predicted=is_predicted(outcomes["judged_by"]))


def _batch_figures(run: Run, state: IterationState, batch: Batch) -> Numbers:
    sampling, outcomes = run.configs(state.iteration).sampling, _load(run, batch.outcomes)
    filtered = bool(sampling.filter_groups or sampling.filter_accuracy)
    right = outcomes.select(pl.col("correct").cast(pl.Float64).mean()).item()
    figures = BatchFigures(
        gen_rounds=len(batch.prompts) if filtered else None,
        groups_drawn=outcomes["group_id"].n_unique() if filtered else None,
        groups_kept=len(kept_groups(run, state, batch)) if filtered else None,
        lost=_lost(run, state, batch) or None,
        drawn_accuracy=right if filtered else None,
        reference_kl=_reference_kl(run, batch),
        reference_full_kl=_mean_of(run, batch, "full_kl"),
        kl_coef=None,
    )
    return dict(asdict(figures))


def _lost(run: Run, state: IterationState, batch: Batch) -> int:
    asked = sum(ref.rows for ref in batch.prompts) * run.configs(state.iteration).sampling.num_generations
    return asked - sum(ref.rows for ref in batch.rollouts)


def _reference_kl(run: Run, batch: Batch) -> float | None:
    old, reference = (_mean_of(run, batch, name) for name in ("old_logprobs", "ref_logprobs"))
    return None if old is None or reference is None else old - reference


def _mean_of(run: Run, batch: Batch, name: str) -> float | None:
    """The mean of a column of the logprobs frames over all tokens; None where it was not asked for."""
    if not batch.logprobs:
        return None
    tokens = _load(run, batch.logprobs)[name].drop_nulls().explode().drop_nulls().cast(pl.Float64)
    return None if tokens.is_empty() else float(tokens.to_numpy().mean())


def _next_kl_coef(run: Run, state: IterationState, batch: Batch, updated: Updated) -> float | None:
    algorithm = run.configs(state.iteration).algorithm
    if state.kl_coef is None:
        return None
    measured = updated.figures.get("kl_loss") if algorithm.use_kl_loss else _reference_kl(run, batch)
    if measured is None:
        return state.kl_coef
    rows = sum(ref.rows for ref in batch.rollouts)
    return algorithm.kl_controller.next_coef(state.kl_coef, kl=float(measured), steps=rows)


def _load(run: Run, refs: Sequence[FrameRef]) -> pl.DataFrame:
    return pl.concat([run.store.load(ref) for ref in refs])
