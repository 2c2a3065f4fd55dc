"""logprobs: the learner's before the first optimizer step, and the reference's, where an algorithm needs them."""

import math

import polars as pl

from papo.engines.protocol import Engine, Logprobs
from schemas.config import RunConfig
from schemas.records import FrameRef, IterationState
from tasks.holding import using, using_reference
from tasks.run import Run
from tasks.stage import stage

_KEY = ["group_id", "sample_index"]


@stage(version=1)
def logprobs(run: Run, state: IterationState, prompts: FrameRef, rollouts: list[FrameRef]) -> list[FrameRef]:
    """Logprobs: one shard for each shard of rollouts; none where one optimizer step a batch makes them needless."""
    config = run.configs(state.iteration)
    old, reference = needs_old(config), config.algorithm.needs.reference
    if not (old or reference):
        return []
    run.generator.rest()

    def make(shard: FrameRef) -> pl.DataFrame:
        frame = run.store.load(shard).select(_KEY)
        empty = pl.lit(None, dtype=pl.List(pl.Float32))
        old_frame = (
            using(run, state, lambda engine: _ask(run, engine, config, prompts, shard, "policy")) if old else None
        )
        reference_frame = (
            using_reference(run, state, lambda engine: _ask(run, engine, config, prompts, shard, "reference"))
            if reference
            else None
        )
        for name, made in (("old_logprobs", old_frame), ("ref_logprobs", reference_frame)):
            frame = frame.with_columns(empty.alias(name)) if made is None else frame.join(
                made, on=_KEY, how="left", maintain_order="left"
            )  # fmt: skip
        return frame

    return [
        run.made(
            stage=logprobs.name,
            version=logprobs.version,
            iteration=state.iteration,
            shard=shard.shard,
            key_parts={
                "prompts": prompts.sha256,
                "rollouts": shard.sha256,
                "policy": state.policy.fingerprint.policy_sha256 if old else None,
                "reference": state.reference_sha256,
                "temperature": config.sampling.temperature,
                "threads": config.engine.threads,
                "dtype": config.engine.dtype,
            },
            make=lambda shard=shard: make(shard),
        )
        for shard in rollouts
    ]


def needs_old(config: RunConfig) -> bool:
    """Whether a batch sees more than one optimizer step, so that old_logprobs differ from the current ones."""
    algorithm, rows = config.algorithm, config.rows_per_iteration
    if algorithm.rollout_correction.bypass_mode:
        return False  # The sampler's stand in for them.
    return algorithm.ppo_epochs * math.ceil(rows / (algorithm.ppo_mini_batch_size or rows)) > 1


def _ask(run: Run, engine: Engine, config: RunConfig, prompts: FrameRef, shard: FrameRef, state: str) -> pl.DataFrame:
    is_policy = state == "policy"
    return run.staged(
        f"{state}-logprobs-{shard.shard:04d}",
        lambda output: engine.logprobs(
            Logprobs(
                state="policy" if is_policy else "reference",
                column="old_logprobs" if is_policy else "ref_logprobs",
                prompts=run.local(prompts),
                rollouts=run.local(shard),
                temperature=config.sampling.temperature,
                output=output,
            ),
            run.progress,
        ),
    )
