"""sample: draw the iteration's prompts from the prepared data."""

from typing import Any

import polars as pl

from papo.drawing import Draw, Part, draw_mixed, draw_rows
from schemas.config import RunConfig
from schemas.data import MixtureSource
from schemas.frames import DataRows
from schemas.records import Cursor, FrameRef, IterationState
from tasks.run import Run
from tasks.stage import stage


@stage(version=2)
def sample(run: Run, state: IterationState) -> FrameRef:
    """Prompts: one row a group, a group being one draw of one data row."""
    config, data = run.configs(state.iteration), run.artifact("prepare", 0)
    first = state.next_group

    def draw() -> pl.DataFrame:
        rows = run.store.load(data)[list(_draw(run, state, data).rows)]
        groups = pl.Series("group_id", range(first, first + rows.height), dtype=pl.Int32)
        return rows.select(groups, *DataRows.to_schema().columns)

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
            **mixing_key(config),
        },
        make=draw,
    )


def mixing_key(config: RunConfig) -> dict[str, Any]:
    """What a key says about how sources are mixed: nothing where there is one."""
    source = config.data.train
    if not isinstance(source, MixtureSource):
        return {}
    return {"mixture": [[member.name, weight] for member, weight in zip(source.sources, source.weights, strict=True)]}


def next_cursor(run: Run, state: IterationState) -> Cursor:
    """Where the data stands after the iteration."""
    source, count = run.configs(state.iteration).data.train, run.configs(state.iteration).prompts_per_iteration
    length = sum(source.weights) if isinstance(source, MixtureSource) else run.artifact("prepare", 0).rows
    epoch, offset = divmod(state.cursor.epoch * length + state.cursor.offset + count, length)
    return Cursor(epoch=epoch, offset=offset)


def _draw(run: Run, state: IterationState, data: FrameRef) -> Draw:
    config = run.configs(state.iteration)
    source = config.data.train
    at: dict[str, Any] = {
        "epoch": state.cursor.epoch,
        "offset": state.cursor.offset,
        "count": config.prompts_per_iteration,
        "shuffle": config.data.shuffle,
    }
    if isinstance(source, MixtureSource):
        return draw_mixed(config.seed, **at, parts=parts_of(run.store.load(data), source))
    return draw_rows(config.seed, **at, size=data.rows)


def parts_of(rows: pl.DataFrame, source: MixtureSource) -> list[Part]:
    """Where each source's rows are in the prepared data."""
    sizes = dict(rows.group_by("source").len().iter_rows())
    parts: list[Part] = []
    first = 0
    for member, weight in zip(source.sources, source.weights, strict=True):
        parts.append(Part(name=member.name, weight=weight, first=first, size=sizes[member.name]))
        first += sizes[member.name]
    return parts
