"""implicit: the implicit PRM's log-probs of the rollouts, whose ratio to the reference's are their process rewards."""

from functools import partial

import polars as pl

from papo.engines.requests import Logprobs
from schemas.records import Batch, FrameRef, IterationState
from tasks.holding import using
from tasks.run import Run
from tasks.stage import stage


@stage(version=1)
def implicit(run: Run, state: IterationState, batch: Batch) -> list[FrameRef]:
    """ImplicitScores: one shard for each shard of rollouts, under the implicit PRM of `state`; none without one."""
    config, prm = run.configs(state.iteration), state.policy.fingerprint.implicit_prm
    if prm is None:
        return []
    return [
        run.made(
            stage=implicit.name,
            version=implicit.version,
            iteration=state.iteration,
            shard=shard.shard,
            key_parts={
                "prompts": prompts.sha256,
                "rollouts": shard.sha256,
                "implicit_prm": prm.weights_sha256,
                "temperature": config.sampling.temperature,
                "threads": config.engine.threads,
                "dtype": config.engine.dtype,
            },
            make=partial(_scored, run, state, prompts, shard, config.sampling.temperature),
        )
        for prompts, shard in batch.prompted
    ]


def _scored(run: Run, state: IterationState, prompts: FrameRef, shard: FrameRef, temperature: float) -> pl.DataFrame:
    return using(
        run,
        state,
        lambda engine: run.staged(
            f"implicit-{shard.shard:04d}",
            lambda output: engine.logprobs(
                Logprobs(
                    state="implicit_prm",
                    column="prm_logprobs",
                    prompts=run.local(prompts),
                    rollouts=run.local(shard),
                    temperature=temperature,
                    output=output,
                ),
                run.progress,
            ),
        ),
    )
