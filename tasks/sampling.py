"""What training and evaluation rollouts share: how a shard's rows are addressed and how an engine is asked for them."""

import polars as pl

from papo.engines.protocol import Engine, Generate, RowAddress
from papo.seeding import seed_for
from schemas.canonical import sha256_of
from schemas.config import RunConfig
from schemas.records import FrameRef, IterationState
from tasks.run import Run


def addresses(prompts: pl.DataFrame, *, samples: int, seed: int, stage: str, iteration: int) -> list[RowAddress]:
    """Every row of a stage in its order: group by group, sample by sample, each with its own seed."""
    return [
        RowAddress(
            group_id=group,
            sample_index=index,
            seed=seed_for(seed, stage=stage, iteration=iteration, group_id=group, sample_index=index),
        )
        for group in prompts["group_id"].to_list()
        for index in range(samples)
    ]


def sampling_sha256(config: RunConfig, *, temperature: float) -> str:
    """Hash of every setting that a token's distribution depends on, stored on each rollout."""
    sampling = config.sampling.model_dump(mode="json", exclude={"num_generations"})
    return sha256_of({**sampling, "temperature": temperature, "top_p": 1.0, "top_k": 0, "repetition_penalty": 1.0})


def generate_shard(
    run: Run,
    engine: Engine,
    *,
    config: RunConfig,
    prompts: FrameRef,
    width: int,
    rows: list[RowAddress],
    batch_rows: int,
    temperature: float,
    state: IterationState,
    name: str,
) -> pl.DataFrame:
    """One shard's rollouts, as the engine made them."""
    path = run.local(prompts)
    return run.staged(
        name,
        lambda output: engine.generate(
            Generate(
                prompts=path,
                rows=tuple(rows),
                batch_rows=batch_rows,
                width=width,
                max_completion_length=config.sampling.max_completion_length,
                temperature=temperature,
                keep_special_tokens=config.sampling.keep_special_tokens,
                policy_version=state.policy.version,
                sampling_sha256=sampling_sha256(config, temperature=temperature),
                output=output,
            ),
            run.progress,
        ),
    )


def width_of(prompts: pl.DataFrame) -> int:
    """Left width of every shard: the iteration's longest prompt, so that no shard's padding depends on another's."""
    return int(prompts["prompt_ids"].list.len().max())  # type: ignore[arg-type]  # polars types max() by the union of all dtypes
