"""Rows of a local JSONL or Parquet file, one dict each, with their numbers in the file."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from papo.errors import DataError


def read_rows(path: Path, *, skip: int = 0, take: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """(row number from 0, row) of a `.jsonl` or `.parquet` file, `take` of them after `skip`.

    Raises DataError for a missing file, another kind of file, and the first line that is not a JSON object.
    """
    if not path.is_file():
        raise DataError(f"{path} does not exist (looked for from {Path.cwd()}). Check the path in the config.")
    match path.suffix:
        case ".jsonl":
            rows = _json_lines(path)
        case ".parquet":
            rows = enumerate(pl.read_parquet(path).iter_rows(named=True))
        case other:
            raise DataError(f"{path} ends in {other!r}, but data files are .jsonl or .parquet. Convert it to one of them.")
    return islice(rows, skip, None if take is None else skip + take)


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8") as file:
        number = 0
        for line in file:
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DataError(f"{path} row {number} is not JSON: {error}.") from None
            if not isinstance(row, dict):
                raise DataError(f"{path} row {number} is not a JSON object.")
            yield number, row
            number += 1
