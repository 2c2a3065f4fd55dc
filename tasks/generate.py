"""generate: sample the iteration's rollouts, one shard at a time."""

from functools import partial

from schemas.records import FrameRef, IterationState
from tasks.holding import using
from tasks.run import Run, shards_of
from tasks.sampling import addresses, generate_shard, generator_key, sampling_sha256, width_of
from tasks.stage import stage


@stage(version=1)
def generate(run: Run, state: IterationState, prompts: FrameRef) -> list[FrameRef]:
    """Rollouts: `num_generations` a prompt, cut into shards of `engine.shard_size` rows."""
    config = run.configs(state.iteration)
    temperature, size = config.sampling.temperature, config.engine.shard_size
    frame = run.store.load(prompts)
    rows = addresses(
        frame, samples=config.sampling.num_generations, seed=config.seed, stage=generate.name, iteration=state.iteration
    )
    made: list[FrameRef] = []
    shards = shards_of(len(rows), size)
    # Each round's shards follow on those of the rounds before, which are as many.
    for shard, part in enumerate(shards, start=prompts.shard * len(shards)):
        shard_rows = [rows[index] for index in part]
        work = partial(
            generate_shard,
            run,
            config=config,
            prompts=prompts,
            width=width_of(frame),
            rows=shard_rows,
            batch_rows=size,
            temperature=temperature,
            state=state,
            name=f"rollouts-{shard:04d}",
        )
        made.append(
            run.made(
                stage=generate.name,
                version=generate.version,
                iteration=state.iteration,
                shard=shard,
                key_parts={
                    "prompts": prompts.sha256,
                    "policy": state.policy.fingerprint.policy_sha256,
                    "sampling": sampling_sha256(config, temperature=temperature),
                    "num_generations": config.sampling.num_generations,
                    "shard_size": size,
                    "threads": config.engine.threads,
                    "dtype": config.engine.dtype,
                    "seed": config.seed,
                    **generator_key(config),
                },
                make=lambda work=work: using(run, state, work),
            )
        )
    return made
