"""advantage: join whole groups and give each rollout its credit."""

from collections.abc import Sequence

import polars as pl

from papo.rollouts import ScoredRollouts
from schemas.convert import advantages_frame, scored_rollouts
from schemas.records import FrameRef, IterationState
from tasks.run import Run
from tasks.stage import stage


@stage(version=1)
def advantage(
    run: Run, state: IterationState, rollouts: list[FrameRef], outcomes: list[FrameRef], scores: list[FrameRef]
) -> FrameRef:
    """Advantages: one frame for all rollouts of the iteration."""
    algorithm = run.configs(state.iteration).algorithm
    identity = run.configs(state.iteration).identity["algorithm"]["advantage"]

    def credit() -> pl.DataFrame:
        frame, scored = load_scored(run, rollouts, outcomes, scores)
        return advantages_frame(frame, scored, algorithm.advantage(scored))

    return run.made(
        stage=advantage.name,
        version=advantage.version,
        iteration=state.iteration,
        shard=0,
        key_parts={
            "rollouts": [ref.sha256 for ref in rollouts],
            "outcomes": [ref.sha256 for ref in outcomes],
            "scores": [ref.sha256 for ref in scores],
            "advantage": identity,
        },
        make=credit,
    )


def load_scored(
    run: Run, rollouts: Sequence[FrameRef], outcomes: Sequence[FrameRef], scores: Sequence[FrameRef]
) -> tuple[pl.DataFrame, ScoredRollouts]:
    """The iteration's rollouts, and what estimators look at, row for row."""
    frame = pl.concat([run.store.load(ref) for ref in rollouts])
    scored = scored_rollouts(
        frame,
        pl.concat([run.store.load(ref) for ref in outcomes]),
        pl.concat([run.store.load(ref) for ref in scores]) if scores else None,
        iteration=rollouts[0].iteration,
    )
    return frame, scored
