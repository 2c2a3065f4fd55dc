"""A run's data tried before a model is loaded: whether its reward can read its references, and its prompts fit.

Some rows are tried, spread evenly over each source, for a few seconds at most: what is wrong with a column or a mapping
is wrong with most rows. `papo data check` looks at every row.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from papo.errors import DataError
from papo.rewards import OutcomeReward, RewardModel
from papo.verifiers.pool import rest_all
from schemas.config import RunConfig
from schemas.data import Columns, DataSource, FileSource, HuggingFaceSource, MixtureSource, PlainSource
from schemas.filechecks import resolve
from schemas.mappings import MAPPINGS
from schemas.rewardchecks import judges_of
from tasks.datarows import DataRow
from tasks.promptlengths import prompt_lengths
from tasks.references import ChecksReference
from tasks.rowfaults import RowFaults
from tasks.run import RawData
from tasks.sources import TRAIN, read_sources, rows_of, valid_row

ROWS = 200
"""References of a source that are tried."""
SECONDS = 3.0
"""How long one source's references are tried at most."""
MOST_UNREADABLE = 0.1
"""Share of a source's references above which a run on them is refused."""
FITTING_ROWS, FITTING_SHARE = 40, 0.9
"""Rows that a mapping is tried on, and the share that it has to make readable to be proposed."""
ENDS = 100
"""The longest and the shortest prompts of a split whose tokens are counted."""
NAMED = 3


@dataclass
class Tried:
    """The data, which passed, and what is odd about it."""

    sources: dict[str, RawData]
    warnings: list[str] = field(default_factory=list[str])


def try_data(config: RunConfig, base: Path, *, lengths: bool = False) -> Tried:
    """Read the data of a config and hold it to the config's rewards; `lengths`: and prompts to the model's tokenizer.

    Raises DataError with what is wrong with any of its sources.
    """
    tried = Tried(read_sources(config, base))
    judges = [judge for _, judge in judges_of(config)]
    faults: list[str] = []
    try:
        for split, raw in tried.sources.items():
            judge = judges[0] if split == TRAIN else judges[-1]
            for where, source, rows in _parts(config, split, raw):
                faults += _short(where, source, rows)
                if not isinstance(judge, RewardModel):
                    _try_references(judge, where, source, rows, base, faults, tried.warnings)
    finally:
        rest_all()
    if faults:
        raise DataError("\n".join(faults))
    if lengths and config.model.path is not None:
        _try_lengths(config, resolve(config.model.path, base), tried.sources)
    return tried


def _parts(config: RunConfig, split: str, raw: RawData) -> Iterator[tuple[str, PlainSource, pl.DataFrame]]:
    """Each plain source of a split: its name, itself, and its rows."""
    source: DataSource | None = config.data.train if split == TRAIN else config.data.evaluation
    if isinstance(source, MixtureSource):
        for member in source.sources:
            yield f"data.{split} ({member.name})", member.source, raw.frame.filter(pl.col("source") == member.name)
    elif source is not None:
        yield f"data.{split}", source, raw.frame


def _short(where: str, source: PlainSource, rows: pl.DataFrame) -> Iterator[str]:
    take = getattr(source, "take", None)
    if isinstance(source, (FileSource, HuggingFaceSource)) and take is not None and take > rows.height:
        skipped = f" after the {source.skip} that skip leaves out" if source.skip else ""
        yield f"{where}: take is {take}, but {source.path} has {rows.height} rows{skipped}. Use {rows.height} or less."


def _try_references(
    judge: OutcomeReward,
    where: str,
    source: PlainSource,
    rows: pl.DataFrame,
    base: Path,
    faults: list[str],
    warnings: list[str],
) -> None:
    chosen = _spread(rows, ROWS)
    unreadable: list[tuple[str, str]] = []
    count, deadline = 0, time.monotonic() + SECONDS
    for prompt_id, reference in chosen.select("prompt_id", "reference_answer").iter_rows():
        count += 1
        if (reason := why_unscorable(judge, reference)) is not None:
            unreadable.append((prompt_id, reason))
        if time.monotonic() > deadline:
            break
    if not unreadable:
        return
    told = "; ".join(f"row {prompt_id}: {reason}" for prompt_id, reason in unreadable[:NAMED])
    more = f"; and {len(unreadable) - NAMED} more" if len(unreadable) > NAMED else ""
    named = getattr(source, "path", source.kind)
    found = (
        f"{where}: {named}: {judge.kind} can judge nothing against {len(unreadable)} of the {count} references that "
        f"were tried (of {rows.height}): {told}{more}."
    )
    if len(unreadable) <= MOST_UNREADABLE * count:
        warnings.append(f"{found} Such rows have no reward.")
        return
    faults.append(f"{found} {_mapping_way_out(judge, source, base)}")


def _mapping_way_out(judge: OutcomeReward, source: PlainSource, base: Path) -> str:
    mapping = fitting_mapping(judge, source, base)
    if mapping is None:
        return "Name the column that holds the answer alone, or a reward that reads these references."
    written = f"{{kind: {source.kind}, path: {getattr(source, 'path', '')}, mapping: {mapping}}}"
    return f"Their layout is that of {mapping}: write mapping: {mapping} in place of columns ({written})."


def why_unscorable(judge: Any, reference: str) -> str | None:
    """Why a reward can judge nothing against a reference; None if it can."""
    try:
        if isinstance(judge, ChecksReference):
            return judge.check_reference(reference)
        verdict = judge(reference, reference_answer=reference, finish_reason="stop")
    except Exception as error:  # a custom reward is anybody's code; here it is data that is tried
        return f"the reward raised {type(error).__name__}: {error}"[:300]
    return (verdict.reason or verdict.status) if verdict.status in ("unscorable", "error") else None


def fitting_mapping(judge: OutcomeReward, source: PlainSource, base: Path) -> str | None:
    """The public data set whose mapping makes this source's references readable, if there is one."""
    if not isinstance(source, (FileSource, HuggingFaceSource)) or source.mapping is not None:
        return None
    shares: dict[str, float] = {}
    for name in MAPPINGS:
        mapped = source.model_copy(update={"mapping": name, "columns": Columns()})
        faults, right, count = RowFaults(""), 0, 0
        for row in islice(rows_of(mapped, base), FITTING_ROWS):
            count += 1
            valid = valid_row(row, mapped, faults)
            if valid is None:
                break
            right += why_unscorable(judge, valid[3]) is None
        shares[name] = right / max(count, 1)
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] >= FITTING_SHARE else None


def _spread(rows: pl.DataFrame, count: int) -> pl.DataFrame:
    """At most `count` rows in an order of which every beginning is spread over the whole."""
    numbers = [at * rows.height // count for at in range(count)] if rows.height > count else list(range(rows.height))
    return rows[[numbers[at] for at in sorted(range(len(numbers)), key=_bits_reversed)]]


def _bits_reversed(number: int) -> int:
    return int(f"{number:032b}"[::-1], 2)


def _try_lengths(config: RunConfig, model: Path, sources: dict[str, RawData]) -> None:
    """Raises DataError where preparation would: for template, tokenizer or length."""
    limit = config.sampling.max_prompt_length
    rows = {split: _ends(split, raw.frame) for split, raw in sources.items()}
    every = [row for found in rows.values() for row in found]
    tokens = prompt_lengths(every, model, config.data.prompt, trust_remote_code=config.model.trust_remote_code)
    for split, found in rows.items():
        over = [row for row in found if tokens[row.split, row.place] > limit]
        total = sources[split].frame.height
        if len(over) == len(found):
            raise DataError(
                f"No prompt of data.{split} that was tried ({len(found)} of {total}) has sampling.max_prompt_length = "
                f"{limit} tokens or fewer after the template. Raise the limit."
            )
        if over and config.data.overlong_prompts == "fail":
            named = ", ".join(f"{row.place} ({tokens[row.split, row.place]})" for row in over[:NAMED])
            raise DataError(
                f"{len(over)} of the {len(found)} prompts of data.{split} that were tried have more than "
                f"sampling.max_prompt_length = {limit} tokens after the template: rows {named}. Raise the limit, or "
                "set data.overlong_prompts: drop."
            )


def _ends(split: str, frame: pl.DataFrame) -> Sequence[DataRow]:
    """The shortest and the longest prompts by characters; all of a small split."""
    ordered = frame.sort(pl.col("prompt").str.len_chars(), maintain_order=True)
    kept = ordered if ordered.height <= 2 * ENDS else pl.concat([ordered.head(ENDS), ordered.tail(ENDS)])
    return [
        DataRow(
            split=split,
            place=row["prompt_id"],
            prompt_id=row["prompt_id"],
            prompt=row["prompt"],
            is_messages=row["is_messages"],
        )
        for row in kept.iter_rows(named=True)
    ]
