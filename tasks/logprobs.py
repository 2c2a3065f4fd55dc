"""logprobs: what policy and reference say of the rollouts before the first optimizer step, as an algorithm needs it."""

import math

import polars as pl

from papo.engines.protocol import Engine
from papo.engines.requests import Logprobs
from schemas.config import RunConfig
from schemas.frames import Logprobs as LogprobsFrame
from schemas.frames import columns_of
from schemas.records import FrameRef, IterationState
from tasks.holding import using, using_reference
from tasks.run import Run
from tasks.stage import stage

_KEY = ["group_id", "sample_index"]


@stage(version=1)
def logprobs(run: Run, state: IterationState, prompts: FrameRef, rollouts: list[FrameRef]) -> list[FrameRef]:
    """Logprobs: one shard for each shard of rollouts; none where the algorithm asks for nothing of the kind."""
    config = run.configs(state.iteration)
    needs = config.algorithm.needs
    old = needs_old(config) or needs.entropies
    if not (old or config.needs_reference):
        return []
    run.generator.rest()

    def make(shard: FrameRef) -> pl.DataFrame:
        frames: list[pl.DataFrame] = []
        if old:
            frames.append(using(run, state, lambda engine: _ask(run, engine, config, prompts, shard, "policy")))
        if config.needs_reference:
            frames.append(
                using_reference(run, state, lambda engine: _ask(run, engine, config, prompts, shard, "reference"))
            )
        return joined(run.store.load(shard).select(_KEY), frames)

    return [
        run.made(
            stage=logprobs.name,
            version=logprobs.version,
            iteration=state.iteration,
            shard=shard.shard,
            key_parts={
                "prompts": prompts.sha256,
                "rollouts": shard.sha256,
                "policy": state.policy.fingerprint.policy_sha256 if old or needs.full_kl else None,
                "reference": state.reference_sha256,
                "temperature": config.sampling.temperature,
                "threads": config.engine.threads,
                "dtype": config.engine.dtype,
                "also": [needs.entropies, needs.full_kl],
            },
            make=lambda shard=shard: make(shard),
        )
        for shard in rollouts
    ]


def needs_old(config: RunConfig) -> bool:
    """Whether old_logprobs are to be stored: a batch sees several optimizer steps, or something else looks at them."""
    algorithm, rows = config.algorithm, config.rows_per_iteration
    needs = algorithm.needs
    if needs.kl_rewards or (needs.implicit_prm and not algorithm.prm_reference):
        return True
    if algorithm.rollout_correction.bypass_mode:
        return False  # The sampler's stand in for them.
    return needs.corrections or algorithm.ppo_epochs * math.ceil(rows / (algorithm.ppo_mini_batch_size or rows)) > 1


def joined(keys: pl.DataFrame, frames: list[pl.DataFrame]) -> pl.DataFrame:
    """The frames' columns side by side, row by key, those that nobody made null."""
    frame = keys
    for made in frames:
        frame = frame.join(made, on=_KEY, how="left", maintain_order="left")
    columns = columns_of(LogprobsFrame)
    lacking = [pl.lit(None, dtype=kind).alias(name) for name, kind in columns.items() if name not in frame.columns]
    return frame.with_columns(lacking).select(list(columns))


def _ask(run: Run, engine: Engine, config: RunConfig, prompts: FrameRef, shard: FrameRef, state: str) -> pl.DataFrame:
    is_policy, needs = state == "policy", config.algorithm.needs
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
                entropies=is_policy and needs.entropies,
                full_kl=not is_policy and needs.full_kl,
            ),
            run.progress,
        ),
    )
