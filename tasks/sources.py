"""The data of a run as its sources have it: every row checked, none converted, all faults in one report.

The written rules:

-   A prompt is text, or a list of chat messages {role, content} whose last one is from the user. It is kept as it is;
    messages become JSON in one canonical spelling.
-   A reference answer is text, or a number, of which the spelling in the file is taken: 7 is "7" and 7.0 is "7.0".
    (The rewards know that these are the same number.) Nothing else is: no null, no boolean, no list.
-   Columns that the mapping does not name are ignored.
-   A source's hash is over the rows as training gets them: the taken rows' mapped columns, in order. An edit of any of
    them is noticed; an edit elsewhere in the file, or another way to store the same rows, is no change.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from papo.errors import DataError
from papo.rewards.answers import normalize_answer
from schemas.canonical import canonical_json
from schemas.config import ChainsSource, Columns, DataSource, FileSource, RunConfig
from schemas.filechecks import resolve
from tasks.rowfaults import FaultyRow, RowFaults, answer_of, id_of, prompt_of
from tasks.rowfiles import Row, named_rows
from tasks.run import RawData

TRAIN, EVALUATION = "train", "evaluation"
COLUMNS = {"prompt_id": pl.String, "prompt": pl.String, "is_messages": pl.Boolean, "reference_answer": pl.String}
_Rows = list[tuple[str, str, bool, str]]


def read_sources(config: RunConfig, base: Path) -> dict[str, RawData]:
    """The run's data by split: `train`, and `evaluation` where the config has any.

    Frames have exactly `COLUMNS`; `prompt` is text, or canonical JSON where `is_messages`. `base` is the folder that
    the config's relative paths start from. Raises DataError with the faults of all splits.
    """
    found: dict[str, RawData] = {}
    faults: list[str] = []
    for split, source in ((TRAIN, config.data.train), (EVALUATION, config.data.evaluation)):
        if source is None:
            continue
        try:
            found[split] = read_source(source, base, split=split)
        except DataError as error:
            faults.append(str(error))
    if faults:
        raise DataError("\n".join(faults))
    return found


def read_source(source: DataSource, base: Path, *, split: str) -> RawData:
    """One source's rows. Raises DataError with all of its faults, each with the numbers of the rows it is in."""
    rows = _chains(source, split) if isinstance(source, ChainsSource) else _file(source, base, split)
    digest = hashlib.sha256()
    for row in rows:
        digest.update(canonical_json(row) + b"\n")
    return RawData(frame=pl.DataFrame(rows, schema=COLUMNS, orient="row"), sha256=digest.hexdigest())


def _chains(source: ChainsSource, split: str) -> _Rows:
    try:
        problems = source.task.problems(source.seed, source.count, source.split)
    except ValueError as error:
        raise DataError(f"data.{split} cannot be made: {error} Use a smaller count, or more steps.") from None
    return [(str(row), problem.prompt, False, problem.reference_answer) for row, problem in enumerate(problems)]


def _file(source: FileSource, base: Path, split: str) -> _Rows:
    path, columns = resolve(source.path, base), source.columns
    names = [columns.prompt, columns.reference_answer, *([columns.prompt_id] if columns.prompt_id else [])]
    mapping = ", ".join(
        f"{field} from column {column!r}"
        for field, column in zip(("prompt", "reference_answer", "prompt_id"), names, strict=False)
    )
    faults = RowFaults(f"data.{split}: {path} ({mapping})")
    rows: _Rows = []
    places: list[str] = []
    for row in named_rows(path, names, skip=source.skip, take=source.take):
        if (valid := _valid(row, columns, faults)) is not None:
            rows.append(valid)
            places.append(row.place)
    if not rows and not faults:
        taken = f" after the {source.skip} that data.{split}.skip leaves out" if source.skip else ""
        raise DataError(f"data.{split}: {path} has no rows{taken}. Training needs one at least: name another file.")
    _check_together(rows, places, faults, conflicts=split == TRAIN)
    faults.raise_if_any()
    return rows


def _valid(row: Row, columns: Columns, faults: RowFaults) -> tuple[str, str, bool, str] | None:
    """The row; None if it has faults, each of which is added."""
    if row.fault is not None:
        faults.add(row.fault, row.place)
        return None
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


def _check_together(rows: _Rows, places: list[str], faults: RowFaults, *, conflicts: bool) -> None:
    ids: dict[str, str] = {}
    answers: dict[str, tuple[str, str]] = {}
    for (name, prompt, _, answer), place in zip(rows, places, strict=True):
        if ids.setdefault(name, place) != place:
            faults.add("prompt_id is that of an earlier row", f"{place} (as {ids[name]})")
        gold = normalize_answer(answer)
        first, earlier = answers.setdefault(prompt, (gold, place))
        if conflicts and first != gold:
            faults.add("prompt is that of an earlier row with another reference answer", f"{place} (as {earlier})")
