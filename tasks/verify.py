"""verify: give each rollout its outcome reward."""

from dataclasses import replace
from typing import Any

import polars as pl

from papo.rewards import shape_reward
from schemas.config import RewardConfig, identity_of
from schemas.frames import Outcomes, columns_of
from schemas.records import FrameRef, IterationState
from tasks.run import Run
from tasks.stage import stage


@stage(version=1)
def verify(run: Run, state: IterationState, prompts: FrameRef, rollouts: list[FrameRef]) -> list[FrameRef]:
    """Outcomes: one shard for each shard of rollouts."""
    reward = run.configs(state.iteration).reward
    return [
        run.made(
            stage=verify.name,
            version=verify.version,
            iteration=state.iteration,
            shard=shard.shard,
            key_parts={
                "prompts": prompts.sha256,
                "rollouts": shard.sha256,
                "reward": identity_of(reward),
                "versions": [reward.outcome.version, reward.format.version],
            },
            make=lambda shard=shard: outcomes(run.store.load(shard), run.store.load(prompts), reward),
        )
        for shard in rollouts
    ]


def outcomes(rollouts: pl.DataFrame, prompts: pl.DataFrame, reward: RewardConfig) -> pl.DataFrame:
    """Verdicts on completions, each against its own group's reference answer."""
    keyed = rollouts.join(
        prompts.select("group_id", "reference_answer"), on="group_id", how="left", maintain_order="left"
    )
    return pl.DataFrame([_outcome(row, reward) for row in keyed.iter_rows(named=True)], schema=columns_of(Outcomes))


def _outcome(row: dict[str, Any], reward: RewardConfig) -> dict[str, Any]:
    verdict = reward.outcome(
        row["completion"], reference_answer=row["reference_answer"], finish_reason=row["finish_reason"]
    )
    verdict = replace(verdict, format=reward.format(row["completion"]))
    return {
        "group_id": row["group_id"],
        "sample_index": row["sample_index"],
        "outcome_reward": shape_reward(
            verdict,
            format_weight=reward.format_weight,
            accuracy_scale=reward.accuracy_scale,
            accuracy_offset=reward.accuracy_offset,
        ),
        "correct": verdict.correct,
        "accuracy_reward": verdict.accuracy,
        "format_reward": verdict.format,
        "extracted": verdict.extracted,
        "status": verdict.status,
        "verifier_version": reward.outcome.version,
    }
