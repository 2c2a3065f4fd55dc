"""What training and evaluation rollouts share: how a shard's rows are addressed and how an engine is asked for them."""

from dataclasses import asdict
from typing import Any

import polars as pl

from papo.engines.protocol import Engine
from papo.engines.requests import Generate, RowAddress
from papo.errors import EngineError, GeneratorDied
from papo.seeding import seed_for
from schemas.canonical import sha256_of
from schemas.config import RunConfig, identity_of
from schemas.generators import EmbeddedGenerator
from schemas.records import FrameRef, IterationState
from tasks.run import Run

ATTEMPTS = 2


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
    apart = ("num_generations", "filter_groups", "filter_accuracy")
    sampling = {name: part for name, part in identity_of(config.sampling).items() if name not in apart}
    return sha256_of({**sampling, "temperature": temperature, "top_p": 1.0, "top_k": 0, "repetition_penalty": 1.0})


def generator_key(config: RunConfig) -> dict[str, Any]:
    """What a key says about who samples: nothing where the learner does, so that its keys are what they always were.

    Which servers, how many and how long they may take is operational: a seeded row is the same from each of them.
    """
    generator = config.generator
    if isinstance(generator, EmbeddedGenerator):
        return {}
    return {"generator": identity_of(generator)}


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
    """One shard's rollouts, as the run's generator made them from the policy that `engine` holds."""
    path = run.local(prompts)
    made = run.staged(
        name,
        lambda output: _generate(
            run,
            engine,
            Generate(
                prompts=path,
                rows=tuple(rows),
                batch_rows=batch_rows,
                width=width,
                max_completion_length=config.sampling.max_completion_length,
                temperature=temperature,
                keep_special_tokens=config.sampling.keep_special_tokens,
                stop_strings=config.sampling.stop_strings,
                policy_version=state.policy.version,
                sampling_sha256=sampling_sha256(config, temperature=temperature),
                output=output,
            ),
        ),
    )
    _check_rows(made, rows, version=state.policy.version)
    return made


def _check_rows(made: pl.DataFrame, asked: list[RowAddress], *, version: int) -> None:
    """Raises EngineError unless `made` is of the rows that were asked for, in their order; some may have been lost."""
    if not {"group_id", "sample_index", "row_seed", "policy_version"} <= set(made.columns):
        return  # Its contract will say so.
    rows = iter([(row.group_id, row.sample_index, row.seed, version) for row in asked])
    for given in made.select("group_id", "sample_index", "row_seed", "policy_version").iter_rows():
        if given not in rows:  # (An iterator: what is looked past was lost.)
            raise EngineError(
                f"The generator gave a row (group_id {given[0]}, sample_index {given[1]}, row_seed {given[2]}, "
                f"policy_version {given[3]}) that is not the next of the {len(asked)} that version {version} was asked "
                "for. Groups of other rows or of other sizes would be compared: nothing of the shard is kept."
            )


def _generate(run: Run, engine: Engine, request: Generate) -> None:
    """Sync, then sample. A generator whose servers are all gone is started again, once; the learner is not touched."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            synced = run.generator.sync(engine, request)
            if synced is not None:
                run.journal.event("synced", **asdict(synced), environment=run.generator.environment)
            for note in run.generator.generate(engine, request, run.progress):
                run.journal.event("generator_mended", what=note)
                run.reporter.message(f"Generator: {note}")
            return
        except GeneratorDied as error:
            run.journal.event("generator_died", attempt=attempt, reason=str(error))
            run.generator.close()
            if attempt == ATTEMPTS:
                raise
            run.reporter.message(f"The generator died ({error}); starting it again.")


def width_of(prompts: pl.DataFrame) -> int:
    """Left width of every shard: the iteration's longest prompt, so that no shard's padding depends on another's."""
    return int(prompts["prompt_ids"].list.len().max())  # type: ignore[arg-type]  # polars types max() by the union of all dtypes
