"""verify: give each rollout its outcome reward."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from papo.errors import RewardFailed
from papo.rewards import Answered, OutcomeReward, RewardModel, Verdict, judge_all, overlong_penalty, shape_reward
from schemas.config import RewardConfig, RunConfig, identity_of
from schemas.frames import Outcomes, columns_of
from schemas.records import FrameRef, IterationState
from tasks.opinions import Consider, Considered, by_rules_alone, opinion_version, second_opinions
from tasks.rewardmodels import Ask, asking, note_other_files, numerics, version_of
from tasks.run import Run
from tasks.stage import stage

MOST_ERRORS = 0.05
"""Share of an iteration's rollouts on which the reward may fail; above it the run stops, for its code is wrong."""
SHOWN_ERRORS = 5
Faulty = list[tuple[int, int, str]]
"""group_id, sample_index and reason of rollouts on which the reward failed."""


@stage(version=3)
def verify(run: Run, state: IterationState, prompts: FrameRef, rollouts: list[FrameRef]) -> list[FrameRef]:
    """Outcomes: one shard for each shard of rollouts. Raises RewardFailed if the reward fails on too many."""
    config = run.configs(state.iteration)
    reward = config.reward
    version = version_of(run, reward.outcome)
    if isinstance(reward.outcome, RewardModel):
        note_other_files(run, state, version)
    failed: Faulty = []
    made = [
        run.made(
            stage=verify.name,
            version=verify.version,
            iteration=state.iteration,
            shard=shard.shard,
            key_parts={
                "prompts": prompts.sha256,
                "rollouts": shard.sha256,
                "reward": identity_of(reward),
                "versions": [
                    version,
                    reward.format.version,
                    *(term.reward.version for term in reward.also),
                    *opinion_version(config),
                ],
                "longest": config.sampling.max_completion_length if reward.overlong_buffer_len is not None else None,
                **numerics(config, reward.outcome),
            },
            make=lambda shard=shard: outcomes(
                run.store.load(shard),
                run.store.load(prompts),
                config,
                version=version,
                progress=run.progress,
                failed=failed,
                ask=asking(run, state, name=f"outcomes-{shard.shard:04d}"),
                consider=second_opinions(run, config, reward.outcome, stage="verify", iteration=state.iteration),
            ),
        )
        for shard in rollouts
    ]
    stop_if_broken(run, made, failed, what=f"rollouts of iteration {state.iteration}", iteration=state.iteration)
    return made


def outcomes(
    rollouts: pl.DataFrame,
    prompts: pl.DataFrame,
    config: RunConfig,
    *,
    outcome: OutcomeReward | None = None,
    version: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    failed: Faulty | None = None,
    ask: Ask | None = None,
    consider: Consider = by_rules_alone,
) -> pl.DataFrame:
    """Verdicts on completions, each against its own group's reference answer.

    `outcome`: what judges; None: what judges in training. `version`: what is said of it in each row; None: its own.
    `failed` takes the rows on which the reward raised: their reward is null and their status `error`. `ask`: how a
    reward model is asked. `consider`: the second opinion.
    """
    reward, outcome = config.reward, outcome or config.reward.outcome
    asked_for = prompts.select(pl.col("^(group_id|question|reference_answer)$"))
    keyed = rollouts.join(asked_for, on="group_id", how="left", maintain_order="left")
    length = pl.col("token_ids").list.len().alias("length")
    rows: list[dict[str, Any]] = []
    judged = _told(_verdicts(outcome, keyed, ask), keyed.height, progress)
    for key, considered in zip(
        keyed.select("group_id", "sample_index", "completion", length).iter_rows(named=True),
        consider(judged, keyed),
        strict=True,
    ):
        row = _outcome(key, considered, reward, longest=config.sampling.max_completion_length)
        rows.append(row | {"verifier_version": version or outcome.version})
        if considered.verdict.status == "error" and failed is not None:
            failed.append((key["group_id"], key["sample_index"], considered.verdict.reason or ""))
    return pl.DataFrame(rows, schema=columns_of(Outcomes))


def _verdicts(outcome: OutcomeReward, rows: pl.DataFrame, ask: Ask | None) -> Iterator[Verdict]:
    if isinstance(outcome, RewardModel):
        if ask is None:
            raise ValueError("a reward model judges on an engine: say how it is asked.")
        return ask(outcome, rows)
    told = rows.select("completion", "reference_answer", "finish_reason").iter_rows(named=True)
    return judge_all(outcome, [Answered(**row) for row in told])


def _told(verdicts: Iterable[Verdict], total: int, progress: Callable[[int, int], None] | None) -> Iterator[Verdict]:
    for done, verdict in enumerate(verdicts, start=1):
        if progress is not None:
            progress(done, total)
        yield verdict


def _outcome(row: dict[str, Any], considered: Considered, reward: RewardConfig, *, longest: int) -> dict[str, Any]:
    completion = row["completion"]
    verdict = replace(considered.verdict, format=reward.format(completion))
    accuracy = shape_reward(verdict, accuracy_scale=reward.accuracy_scale, accuracy_offset=reward.accuracy_offset)
    texts = [term.reward(completion) for term in reward.also]
    parts: list[float | None] = [accuracy, verdict.format, *texts]
    weights = [1.0, reward.format_weight, *(term.weight for term in reward.also)]
    if reward.overlong_buffer_len is not None:
        parts.append(
            overlong_penalty(
                row["length"], max_completion_length=longest, overlong_buffer_len=reward.overlong_buffer_len
            )
        )
        weights.append(reward.overlong_penalty_factor)
    terms = [weight * (part or 0.0) for weight, part in zip(weights, parts, strict=True) if weight]
    return {
        "group_id": row["group_id"],
        "sample_index": row["sample_index"],
        "outcome_reward": None if accuracy is None else sum(terms),
        "components": parts,
        "correct": verdict.correct,
        "accuracy_reward": verdict.accuracy,
        "format_reward": verdict.format,
        "extracted": verdict.extracted,
        "status": verdict.status,
        "judged_by": verdict.judged_by,
        "llm_verdict": considered.opinion,
        "llm_reply": considered.reply,
    }


def stop_if_broken(run: Run, made: list[FrameRef], failed: Faulty, *, what: str, iteration: int) -> None:
    """Note the rows of these frames on which the reward failed. Raises RewardFailed if they are too many."""
    statuses = pl.concat([run.store.load(ref)["status"] for ref in made]) if made else pl.Series(dtype=pl.String)
    errors = int((statuses == "error").sum())
    if not errors:
        return
    shown = [{"group_id": group, "sample_index": index, "reason": why} for group, index, why in failed[:SHOWN_ERRORS]]
    run.journal.event("reward_errors", iteration=iteration, what=what, errors=errors, rows=statuses.len(), shown=shown)
    if errors > MOST_ERRORS * statuses.len():
        example = f" The first: {failed[0][2]}." if failed else ""
        raise RewardFailed(
            f"The reward failed on {errors} of {statuses.len()} {what}, more than "
            f"{MOST_ERRORS:.0%}.{example} These rows have no reward and would be left out. Repair the reward (see "
            "reward_errors in events.jsonl) and resume."
        )
