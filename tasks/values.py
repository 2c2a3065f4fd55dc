"""values: what the critic expects of the rollouts, before it is trained on them."""

from functools import partial

import polars as pl

from papo.engines.requests import Values
from schemas.records import Batch, FrameRef, IterationState
from tasks.holding import using
from tasks.run import Run
from tasks.stage import stage


@stage(version=1)
def values(run: Run, state: IterationState, batch: Batch) -> list[FrameRef]:
    """Values: one shard for each shard of rollouts; none where there is no critic."""
    config, critic = run.configs(state.iteration), state.policy.fingerprint.critic
    if critic is None:
        return []
    return [
        run.made(
            stage=values.name,
            version=values.version,
            iteration=state.iteration,
            shard=shard.shard,
            key_parts={
                "prompts": prompts.sha256,
                "rollouts": shard.sha256,
                "critic": critic.weights_sha256,
                "threads": config.engine.threads,
                "dtype": config.engine.dtype,
            },
            make=partial(_valued, run, state, prompts, shard),
        )
        for prompts, shard in batch.prompted
    ]


def _valued(run: Run, state: IterationState, prompts: FrameRef, shard: FrameRef) -> pl.DataFrame:
    return using(
        run,
        state,
        lambda engine: run.staged(
            f"values-{shard.shard:04d}",
            lambda output: engine.values(
                Values(prompts=run.local(prompts), rollouts=run.local(shard), output=output), run.progress
            ),
        ),
    )
