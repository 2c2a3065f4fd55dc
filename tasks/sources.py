"""The data of a run as its sources have it: every row checked, none converted, all faults in one report.

The written rules:

-   A prompt is text, or a list of chat messages {role, content} whose last one is from the user. It is kept as it is;
    messages become JSON in one canonical spelling.
-   A reference answer is text, or a number, of which the spelling in the file is taken: 7 is "7" and 7.0 is "7.0".
    (The rewards know that these are the same number.) Nothing else is: no null, no boolean, no list.
-   Columns that `columns` or the named mapping does not read are ignored.
-   A source's hash is over the rows as training gets them: the taken rows' mapped columns, in order. An edit of any of
    them is noticed; an edit elsewhere in the file, or another way to store the same rows, is no change.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from papo.errors import DataError
from papo.rewards.answers import normalize_answer
from schemas.canonical import canonical_json, sha256_of
from schemas.config import RunConfig
from schemas.data import (
    Columns,
    DataSource,
    FileSource,
    HuggingFaceSource,
    MadeSource,
    MixtureSource,
    PlainSource,
    plain_sources,
)
from schemas.filechecks import is_hub_name, resolve
from schemas.mappings import MAPPINGS, PublicMapping
from schemas.publicrows import UnmappedError
from tasks.hubrows import dataset_rows
from tasks.madeproblems import made_problems
from tasks.rowfaults import FaultyRow, RowFaults, answer_of, id_of, prompt_of
from tasks.rowfiles import Row, named_rows
from tasks.run import RawData

TRAIN, EVALUATION = "train", "evaluation"
COLUMNS = {
    "prompt_id": pl.String,
    "source": pl.String,
    "prompt": pl.String,
    "is_messages": pl.Boolean,
    "reference_answer": pl.String,
}
_Tuples = list[tuple[str, str, bool, str]]


@dataclass
class _Rows:
    rows: _Tuples
    """prompt_id, prompt, is_messages, reference_answer."""
    places: list[str]
    """What to call each in a report."""


def gone_sources(config: RunConfig, base: Path) -> tuple[str, ...]:
    """Splits of which a file, or a data set's folder, is not where the config says."""
    gone = [
        str(place[1])
        for place, source in plain_sources(config.data)
        if isinstance(source, FileSource | HuggingFaceSource)
        and not resolve(source.path, base).exists()
        and not (isinstance(source, HuggingFaceSource) and is_hub_name(source.path))
    ]
    return tuple(dict.fromkeys(gone))


def read_sources(config: RunConfig, base: Path, *, without: Collection[str] = ()) -> dict[str, RawData]:
    """The run's data by split: `train`, and `evaluation` where the config has any; `without`: splits to leave out.

    Frames have exactly `COLUMNS`; `prompt` is text, or canonical JSON where `is_messages`. `base` is the folder that
    the config's relative paths start from. Raises DataError with the faults of all splits.
    """
    found: dict[str, RawData] = {}
    faults: list[str] = []
    for split, source in ((TRAIN, config.data.train), (EVALUATION, config.data.evaluation)):
        if source is None or split in without:
            continue
        try:
            found[split] = read_source(source, base, split=split)
        except DataError as error:
            faults.append(str(error))
    if faults:
        raise DataError("\n".join(faults))
    return found


def read_source(source: DataSource, base: Path, *, split: str) -> RawData:
    """One split's rows; those of a mixture source by source. Raises DataError with all of its faults, each with the
    numbers of the rows it is in."""
    if isinstance(source, MixtureSource):
        return _mixed(source, base, split)
    rows = _plain(source, base, f"data.{split}", conflicts=split == TRAIN).rows
    return RawData(frame=_frame(rows, split), sha256=_digest(rows))


def _mixed(source: MixtureSource, base: Path, split: str) -> RawData:
    """Every member's rows, whose ids begin with its name. The hash is over the names and what each source hashes to."""
    frames: list[pl.DataFrame] = []
    digests: list[tuple[str, str]] = []
    faults: list[str] = []
    all_rows, all_places = _Tuples(), list[str]()
    for index, member in enumerate(source.sources):
        try:
            found = _plain(
                member.source, base, f"data.{split}.sources[{index}] ({member.name})", conflicts=split == TRAIN
            )
        except DataError as error:
            faults.append(str(error))
            continue
        digests.append((member.name, _digest(found.rows)))
        named = [(f"{member.name}/{row[0]}", *row[1:]) for row in found.rows]
        frames.append(_frame(named, member.name))
        all_rows += named
        all_places += [f"{member.name} {place}" for place in found.places]
    if faults:
        raise DataError("\n".join(faults))
    together = RowFaults(f"data.{split} (its sources together)")
    _check_together(all_rows, all_places, together, conflicts=split == TRAIN)
    together.raise_if_any()
    return RawData(frame=pl.concat(frames), sha256=sha256_of(digests))


def _frame(rows: Sequence[tuple[Any, ...]], source: str) -> pl.DataFrame:
    named = [(prompt_id, source, *rest) for prompt_id, *rest in rows]
    return pl.DataFrame(named, schema=COLUMNS, orient="row")


def _digest(rows: _Tuples) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(canonical_json(row) + b"\n")
    return digest.hexdigest()


def _plain(source: PlainSource, base: Path, where: str, *, conflicts: bool) -> _Rows:
    if isinstance(source, MadeSource):
        made = made_problems(source, where)
        return _Rows(
            [(str(row), *problem) for row, problem in enumerate(made)], [f"problem {row}" for row in range(len(made))]
        )
    path = source.path if isinstance(source, HuggingFaceSource) else resolve(source.path, base)
    return _checked(rows_of(source, base), source, f"{where}: {path}", conflicts=conflicts)


def rows_of(source: FileSource | HuggingFaceSource, base: Path) -> Iterator[Row]:
    """The source's rows as they are stored, with the columns that it reads. Raises DataError if it has none to read."""
    names = _names(source)
    if isinstance(source, HuggingFaceSource):
        return dataset_rows(source, base, names)
    return named_rows(resolve(source.path, base), names, skip=source.skip, take=source.take)


def valid_row(row: Row, source: FileSource | HuggingFaceSource, faults: RowFaults) -> tuple[str, str, bool, str] | None:
    """prompt_id, prompt, is_messages and reference_answer of a row; None if it has faults, each of which is added."""
    if row.fault is not None:
        faults.add(row.fault, row.place)
        return None
    return _public(row, MAPPINGS[source.mapping], faults) if source.mapping else _valid(row, source.columns, faults)


def _names(source: FileSource | HuggingFaceSource) -> list[str]:
    if source.mapping is not None:
        return list(MAPPINGS[source.mapping].columns)
    columns = source.columns
    return [columns.prompt, columns.reference_answer, *([columns.prompt_id] if columns.prompt_id else [])]


def _checked(found: Iterable[Row], source: FileSource | HuggingFaceSource, where: str, *, conflicts: bool) -> _Rows:
    """The rows that are right, if all are. Raises DataError with every fault."""
    columns = source.columns
    mapped = {"prompt": columns.prompt, "reference_answer": columns.reference_answer}
    mapped |= {"prompt_id": columns.prompt_id} if columns.prompt_id else {}
    named = ", ".join(f"{field} from column {name!r}" for field, name in mapped.items())
    faults = RowFaults(f"{where} ({f'mapping {source.mapping}' if source.mapping else named})")
    rows, places = _Tuples(), list[str]()
    for row in found:
        if (valid := valid_row(row, source, faults)) is not None:
            rows.append(valid)
            places.append(row.place)
    if not rows and not faults:
        taken = f" after the {source.skip} that skip leaves out" if source.skip else ""
        raise DataError(f"{where} has no rows{taken}. Training needs one at least: name another source.")
    _check_together(rows, places, faults, conflicts=conflicts)
    faults.raise_if_any()
    return _Rows(rows, places)


def _valid(row: Row, columns: Columns, faults: RowFaults) -> tuple[str, str, bool, str] | None:
    """The row; None if it has faults, each of which is added."""
    parts: list[tuple[str, str, Callable[[Any], Any]]] = [
        ("prompt", columns.prompt, prompt_of),
        ("reference_answer", columns.reference_answer, answer_of),
    ]
    if columns.prompt_id is not None:
        parts.append(("prompt_id", columns.prompt_id, id_of))
    found: dict[str, Any] = {"prompt_id": str(row.number)}
    before = len(faults)
    for part, column, reader in parts:
        if column not in row.values:
            faults.add(f"no column {column!r}", row.place, hint=f"The columns are {', '.join(row.columns) or 'none'}.")
            continue
        try:
            found[part] = reader(row.values[column])
        except FaultyRow as fault:
            faults.add(f"{part} {fault}", row.place)
    return None if len(faults) > before else (found["prompt_id"], *found["prompt"], found["reference_answer"])


def _public(row: Row, mapping: PublicMapping, faults: RowFaults) -> tuple[str, str, bool, str] | None:
    """The row as a public data set's mapping has it; None if it has faults, each of which is added."""
    try:
        values = {"prompt_id": str(row.number), **mapping.mapped(row.values)}
    except UnmappedError as fault:
        faults.add(str(fault), row.place, hint=f"The columns are {', '.join(row.columns) or 'none'}.")
        return None
    readers: dict[str, Callable[[Any], Any]] = {"prompt": prompt_of, "reference_answer": answer_of, "prompt_id": id_of}
    found: dict[str, Any] = {}
    for part, reader in readers.items():
        try:
            found[part] = reader(values[part])
        except FaultyRow as fault:
            faults.add(f"{part} {fault}", row.place)
    return (found["prompt_id"], *found["prompt"], found["reference_answer"]) if len(found) == len(readers) else None


def _check_together(rows: _Tuples, places: list[str], faults: RowFaults, *, conflicts: bool) -> None:
    ids: dict[str, str] = {}
    answers: dict[str, tuple[str, str]] = {}
    for (name, prompt, _, answer), place in zip(rows, places, strict=True):
        if ids.setdefault(name, place) != place:
            faults.add("prompt_id is that of an earlier row", f"{place} (as {ids[name]})")
        gold = normalize_answer(answer)
        first, earlier = answers.setdefault(prompt, (gold, place))
        if conflicts and first != gold:
            faults.add("prompt is that of an earlier row with another reference answer", f"{place} (as {earlier})")
