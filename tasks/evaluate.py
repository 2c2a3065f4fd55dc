"""evaluate: sample the held-out prompts and judge them as training does."""

from functools import partial

import polars as pl

from papo.correctness import is_predicted, named
from schemas.config import EvaluationConfig, RunConfig, identity_of
from schemas.records import FrameRef, IterationState
from tasks.bysource import accuracy_by_source
from tasks.holding import using
from tasks.journal import EVALUATED
from tasks.opinions import Consider, by_rules_alone, opinion_figures, opinion_version, second_opinions
from tasks.rewardmodels import Ask, asking, version_of
from tasks.run import Run, shards_of
from tasks.sampling import addresses, generate_shard, generator_key, sampling_sha256, width_of
from tasks.score import process_scores
from tasks.stage import stage
from tasks.verify import Faulty, outcomes, stop_if_broken


@stage(version=4)
def evaluate(run: Run, state: IterationState, held_out: list[FrameRef]) -> list[FrameRef]:
    """Evaluations of the policy in `state`, filed under the iteration that made it (the genesis for version 0).

    Every version meets the same held-out prompts with the same seeds, which training never uses, so that two
    evaluations differ by the policy alone.
    """
    iteration = state.iteration - 1
    config = run.configs(max(iteration, 0))
    settings = config.held_out
    if settings is None or not held_out:
        return []
    (prompts,) = held_out
    frame = run.store.load(prompts)
    rows = addresses(frame, samples=settings.samples, seed=config.seed, stage=evaluate.name, iteration=0)
    consider = second_opinions(run, config, config.held_out_outcome, stage="evaluate", iteration=iteration)
    version = version_of(run, config.held_out_outcome)
    made: list[FrameRef] = []
    failed: Faulty = []
    for shard, part in enumerate(shards_of(len(rows), settings.shard_size)):
        work = partial(
            generate_shard,
            run,
            config=config,
            prompts=prompts,
            width=width_of(frame),
            rows=[rows[index] for index in part],
            batch_rows=min(settings.shard_size, len(rows)),
            temperature=settings.temperature,
            state=state,
            name=f"evaluation-{shard:04d}",
        )
        ask = asking(run, state, name=f"evaluation-{shard:04d}")
        made.append(
            run.made(
                stage=evaluate.name,
                version=evaluate.version,
                iteration=iteration,
                shard=shard,
                key_parts=_key_parts(config, settings, prompts, state, version),
                make=lambda work=work, ask=ask: judged(
                    using(run, state, work), frame, config, version=version, failed=failed, ask=ask, consider=consider
                ),
            )
        )
    # An accuracy of the rows that are left would look like one of all.
    stop_if_broken(run, made, failed, what=f"held-out rollouts of version {state.policy.version}", iteration=iteration)
    return made


def judged(
    rollouts: pl.DataFrame,
    prompts: pl.DataFrame,
    config: RunConfig,
    *,
    version: str | None = None,
    failed: Faulty | None = None,
    ask: Ask | None = None,
    consider: Consider = by_rules_alone,
) -> pl.DataFrame:
    """Evaluation rows: what was said, whether it is right, and its process score where the run has a scorer."""
    outcome = config.held_out_outcome
    verdicts = outcomes(
        rollouts, prompts, config, outcome=outcome, version=version, failed=failed, ask=ask, consider=consider
    )
    if config.scorer is None:
        scores = pl.Series("process_score", [None] * rollouts.height, dtype=pl.Float64)
    else:
        scored = process_scores(rollouts, prompts, verdicts, config.scorer, only_correct=False)
        scores = scored["process_score"]
    sources = prompts.select("group_id", "source")
    return (
        rollouts.join(sources, on="group_id", how="left", maintain_order="left")
        .select(
            "group_id",
            "sample_index",
            "prompt_id",
            "source",
            "completion",
            pl.col("token_ids").list.len().cast(pl.Int32).alias("token_count"),
            "finish_reason",
        )
        .with_columns(
            *verdicts.select("correct", "extracted", "status", "judged_by", "llm_verdict", "llm_reply"),
            scores,
            rollouts["policy_version"],
        )
    )


def evaluation_summary(run: Run, evaluations: list[FrameRef]) -> dict[str, float | int | bool | None]:
    """The figures of one evaluation, for the commit and the journal; empty if there was none."""
    if not evaluations:
        return {}
    rows = pl.concat([run.store.load(ref) for ref in evaluations])
    config = run.configs(max(evaluations[0].iteration, 0))
    settings = config.evaluation or EvaluationConfig()
    sound = pl.col("correct") & (pl.col("process_score") >= settings.sound_threshold)
    figures = rows.select(
        pl.col("correct").mean().alias("evaluation/accuracy"),
        pl.col("correct").count().alias("evaluation/n"),
        sound.mean().alias("evaluation/sound_ratio"),
        pl.col("process_score").mean().alias("evaluation/process_mean"),
        pl.col("token_count").mean().alias("evaluation/length_mean"),
        (pl.col("finish_reason") == "length").mean().alias("evaluation/truncated_ratio"),
    )
    measured = figures.row(0, named=True) | accuracy_by_source(rows, prefix="evaluation/")
    measured |= opinion_figures(config, rows, prefix="evaluation/")
    return named(measured, predicted=is_predicted(rows["judged_by"]))


@stage(version=1)
def note_evaluation(run: Run, state: IterationState, evaluations: list[FrameRef]) -> None:
    """Record an evaluation that the schedule did not ask for (a run's last version): an event, no ledger row, since
    where a run pauses must not change its hashes."""
    if evaluations:
        run.journal.event(EVALUATED, version=state.policy.version, **evaluation_summary(run, evaluations))


def evaluation_due(run: Run, version: int) -> bool:
    """Before the first iteration and after every k-th."""
    settings = run.configs(max(version - 1, 0)).held_out
    return settings is not None and version % settings.every == 0


def _key_parts(
    config: RunConfig, settings: EvaluationConfig, prompts: FrameRef, state: IterationState, version: str
) -> dict[str, object]:
    return {
        "prompts": prompts.sha256,
        "policy": state.policy.fingerprint.policy_sha256,
        "policy_version": state.policy.version,
        "sampling": sampling_sha256(config, temperature=settings.temperature),
        "samples": settings.samples,
        "shard_size": settings.shard_size,
        "threads": config.engine.threads,
        "dtype": config.engine.dtype,
        "reward": identity_of(config.reward),
        "outcome": config.identity["evaluation"].get("outcome"),
        "versions": [version, config.scorer.version if config.scorer else None, *opinion_version(config)],
        "seed": config.seed,
        **generator_key(config),
    }
