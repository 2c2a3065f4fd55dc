"""advantage: join whole groups and give each rollout its credit."""

import polars as pl

from schemas.convert import advantages_frame, dropped_frame
from schemas.records import Batch, FrameRef, IterationState
from tasks.batches import credited
from tasks.run import Run
from tasks.stage import stage


@stage(version=2)
def advantage(run: Run, state: IterationState, batch: Batch) -> FrameRef:
    """Advantages: one frame for all rollouts of the iteration, those of groups that are not trained on included."""
    config = run.configs(state.iteration)
    algorithm = config.identity["algorithm"]

    def credit() -> pl.DataFrame:
        made = credited(run, state, batch)
        frames = [advantages_frame(made.rollouts, made.scored, made.terms), dropped_frame(made.dropped)]
        return pl.concat([frame for frame in frames if frame.height])

    return run.made(
        stage=advantage.name,
        version=advantage.version,
        iteration=state.iteration,
        shard=0,
        key_parts={
            "rollouts": [ref.sha256 for ref in batch.rollouts],
            "outcomes": [ref.sha256 for ref in batch.outcomes],
            "scores": [ref.sha256 for ref in batch.scores],
            "measured": [ref.sha256 for ref in (*batch.logprobs, *batch.values, *batch.implicit)],
            "advantage": algorithm["advantage"],
            "implicit_prm": algorithm["implicit_prm"],
            "kl": [algorithm[name] for name in ("use_kl_in_reward", "kl_coef", "kl_penalty")] + [state.kl_coef],
            "filters": [config.identity["sampling"].get(name) for name in ("filter_groups", "filter_accuracy")],
            "count": config.prompts_per_iteration,
        },
        make=credit,
    )
