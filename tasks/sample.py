"""sample: draw the iteration's prompts from the prepared data."""

import math
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
def sample(run: Run, state: IterationState, number: int = 0) -> FrameRef:
    """Prompts of a round of drawing: one row a group, a group being one draw of one data row."""
    config, data = run.configs(state.iteration), run.artifact("prepare", 0)
    first, cursor = after_rounds(run, state, number)
    count = prompts_drawn(config)

    def draw() -> pl.DataFrame:
        rows = run.store.load(data)[list(_draw(run, config, cursor, data).rows)]
        groups = pl.Series("group_id", range(first, first + rows.height), dtype=pl.Int32)
        return rows.select(groups, *DataRows.to_schema().columns)

    return run.made(
        stage=sample.name,
        version=sample.version,
        iteration=state.iteration,
        shard=number,
        key_parts={
            "data": data.sha256,
            "cursor": cursor.model_dump(),
            "first_group": first,
            "count": count,
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


def after_rounds(run: Run, state: IterationState, rounds: int) -> tuple[int, Cursor]:
    """The next group's id and where the data stands after so many rounds of the iteration."""
    config = run.configs(state.iteration)
    source, drawn = config.data.train, rounds * prompts_drawn(config)
    length = sum(source.weights) if isinstance(source, MixtureSource) else run.artifact("prepare", 0).rows
    epoch, offset = divmod(state.cursor.epoch * length + state.cursor.offset + drawn, length)
    return state.next_group + drawn, Cursor(epoch=epoch, offset=offset)


def prompts_drawn(config: RunConfig) -> int:
    """Prompts of one round: those to be kept, times what the accuracy filter draws for each."""
    accuracy = config.sampling.filter_accuracy
    return math.ceil(config.prompts_per_iteration * (1.0 if accuracy is None else accuracy.oversample_factor))


def _draw(run: Run, config: RunConfig, cursor: Cursor, data: FrameRef) -> Draw:
    source = config.data.train
    at: dict[str, Any] = {
        "epoch": cursor.epoch,
        "offset": cursor.offset,
        "count": prompts_drawn(config),
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
