"""sample: draw the iteration's prompts from the prepared data."""

import polars as pl

from papo.drawing import Draw, draw_rows
from schemas.records import Cursor, FrameRef, IterationState
from tasks.run import Run
from tasks.stage import stage


@stage(version=1)
def sample(run: Run, state: IterationState) -> FrameRef:
    """Prompts: one row a group, a group being one draw of one data row."""
    config, data = run.configs(state.iteration), run.artifact("prepare", 0)
    first = state.next_group

    def draw() -> pl.DataFrame:
        rows = run.store.load(data)[list(_draw(run, state, data.rows).rows)]
        groups = pl.Series("group_id", range(first, first + rows.height), dtype=pl.Int32)
        return rows.select(groups, "prompt_id", "prompt", "question", "reference_answer", "prompt_ids")

    return run.made(
        stage=sample.name,
        version=sample.version,
        iteration=state.iteration,
        shard=0,
        key_parts={
            "data": data.sha256,
            "cursor": state.cursor.model_dump(),
            "first_group": first,
            "count": config.prompts_per_iteration,
            "shuffle": config.data.shuffle,
            "seed": config.seed,
        },
        make=draw,
    )


def next_cursor(run: Run, state: IterationState) -> Cursor:
    """Where the data stands after the iteration."""
    draw = _draw(run, state, run.artifact("prepare", 0).rows)
    return Cursor(epoch=draw.epoch, offset=draw.offset)


def _draw(run: Run, state: IterationState, size: int) -> Draw:
    config = run.configs(state.iteration)
    return draw_rows(
        config.seed,
        epoch=state.cursor.epoch,
        offset=state.cursor.offset,
        count=config.prompts_per_iteration,
        size=size,
        shuffle=config.data.shuffle,
    )
