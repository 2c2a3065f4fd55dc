"""Rows of a JSONL or Parquet file, one at a time, each as the file has it: no guessing, no conversion."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, cast

import polars as pl

from papo.errors import DataError
from tasks.rowfaults import Spelled

LONGEST_ROW = 1_000_000
"""Bytes; a longer row is refused before anything looks into it (BUG-043)."""
TOO_LONG = f"longer than {LONGEST_ROW} bytes"


@dataclass(frozen=True)
class Row:
    number: int
    """In the file, from 0, blank lines not counted."""
    place: str
    """What to call it: "line 3" counts from 1, as editors do; "row 2" from 0."""
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    columns: Sequence[str] = ()
    fault: str | None = None
    """Why it has no values."""


def named_rows(path: Path, names: Sequence[str], *, skip: int, take: int | None) -> Iterator[Row]:
    """`take` rows (None: all) after the first `skip`, with at least the columns `names` that there are.

    Raises DataError where the file as a whole cannot be read.
    """
    if path.is_dir():
        raise DataError(f"{path} is a folder: name the file.")
    if not path.is_file():
        raise DataError(f"{path} does not exist (looked for from {Path.cwd()}): check the path.")
    try:
        match path.suffix:
            case ".jsonl":
                yield from islice(_json_rows(path, skip), skip, None if take is None else skip + take)
            case ".parquet":
                yield from _parquet_rows(path, names, skip, take)
            case _:
                raise DataError(f"{path} ends in neither .jsonl nor .parquet: convert it to one of them.")
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check its permissions.") from None


def _json_rows(path: Path, skip: int) -> Iterator[Row]:
    number = 0
    with path.open("rb") as file:
        for index, line in enumerate(file):
            text = line.removeprefix(b"\xef\xbb\xbf") if index == 0 else line
            if not text.strip():
                continue
            # Rows that are left out are not looked into.
            yield Row(number, "") if number < skip else _json_row(number, f"line {index + 1}", text)
            number += 1


def _json_row(number: int, place: str, line: bytes) -> Row:
    if len(line) > LONGEST_ROW:
        return Row(number, place, fault=TOO_LONG)
    try:
        value = json.loads(
            line.decode(),
            parse_int=Spelled,
            parse_float=Spelled,
            parse_constant=_no_constant,
            object_pairs_hook=_each_once,
        )
    except UnicodeDecodeError:
        return Row(number, place, fault="not UTF-8")
    except json.JSONDecodeError as error:
        return Row(number, place, fault=f"not JSON ({error.msg} at column {error.colno})")
    except (ValueError, RecursionError) as error:
        return Row(number, place, fault=f"not JSON ({error})")
    if not isinstance(value, dict):
        return Row(number, place, fault="not a JSON object")
    values = cast("dict[str, Any]", value)
    return Row(number, place, values, list(values))


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a column stands twice in it")
    return found


def _parquet_rows(path: Path, names: Sequence[str], skip: int, take: int | None) -> Iterator[Row]:
    try:
        scan = pl.scan_parquet(path)
        columns = scan.collect_schema().names()
        frame = scan.select([name for name in dict.fromkeys(names) if name in columns]).slice(skip, take).collect()
        height: int = frame.height or scan.slice(skip, take).select(pl.len()).collect().item()
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path} is no Parquet file that can be read ({str(error).splitlines()[0]}).") from None
    rows: Iterator[dict[str, Any]] = frame.iter_rows(named=True) if frame.width else iter([dict[str, Any]()] * height)
    for number, values in enumerate(rows, start=skip):
        yield row_of(number, values, columns)


def row_of(number: int, values: dict[str, Any], columns: Sequence[str]) -> Row:
    """A row of a table, from its values as Python has them: numbers get their JSON spelling."""
    place = f"row {number}"
    if sum(map(_size, values.values())) > LONGEST_ROW:
        return Row(number, place, fault=TOO_LONG)
    return Row(number, place, {name: _spelled(value) for name, value in values.items()}, columns)


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, dict):
        return sum(map(_size, cast("dict[str, Any]", value).values()))
    return sum(map(_size, cast("list[Any]", value))) if isinstance(value, list) else 0


def _spelled(value: Any) -> Any:
    """A number in its JSON spelling; what has none stays as it is, to be refused by its kind."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        spelled = json.dumps(value)
        return value if spelled in ("NaN", "Infinity", "-Infinity") else Spelled(spelled)
    return value
