"""Sources with a public mapping: the same checks, reports and hashes as any source."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.errors import DataError
from schemas.data import FileSource
from tasks.run import RawData
from tasks.sources import read_source

ROWS: list[dict[str, Any]] = [
    {"question": "1+1=", "answer": "1 + 1 = 2\n#### 2"},
    {"question": "500+500=", "answer": "…\n#### 1,000"},
]


def read(folder: Path, rows: list[dict[str, Any]], **source: Any) -> RawData:
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return read_source(FileSource.model_validate({"path": "rows.jsonl", **source}), folder, split="train")


def test_rows_are_what_a_plain_file_of_them_would_give(tmp_path: Path) -> None:
    mapped = read(tmp_path, ROWS, mapping="gsm8k")
    plain = read(tmp_path, [{"prompt": "1+1=", "answer": "2"}, {"prompt": "500+500=", "answer": "1000"}])

    assert mapped.frame["reference_answer"].to_list() == ["2", "1000"]
    assert mapped.frame.equals(plain.frame)
    assert mapped.sha256 == plain.sha256


def test_parquet_is_read_by_the_mapping_too(tmp_path: Path) -> None:
    pl.DataFrame({**{name: [row[name] for row in ROWS] for name in ROWS[0]}, "more": [1, 2]}).write_parquet(
        tmp_path / "rows.parquet"
    )
    source = FileSource.model_validate({"path": "rows.parquet", "mapping": "gsm8k"})

    assert read_source(source, tmp_path, split="train").sha256 == read(tmp_path, ROWS, mapping="gsm8k").sha256


def test_every_fault_is_in_one_report(tmp_path: Path) -> None:
    """BUG-130, by a mapping: rows that lack a column, a mark, a prompt or an answer."""
    rows = [*ROWS, {"question": "Q"}, {"question": "R", "answer": "5"}, {"question": " ", "answer": "#### 5"},
            {"question": "S", "answer": "####"}, {"question": "1+1=", "answer": "#### 3"}]  # fmt: skip

    with pytest.raises(DataError) as raised:
        read(tmp_path, rows, mapping="gsm8k")

    text = str(raised.value)
    for part in ("mapping gsm8k", "has 5 faults", "no column 'answer': line 3", "no ####: line 4",
                 "prompt is blank: line 5", "reference_answer is blank: line 6",
                 "another reference answer: line 7 (as line 1)"):  # fmt: skip
        assert part in text


def test_numbers_of_a_mapped_column_keep_their_spelling(tmp_path: Path) -> None:
    """BUG-129: an answer of 7.0 is "7.0", an id of 1.9 is refused."""
    found = read(tmp_path, [{"ID": 3, "Body": "B.", "Question": "Q?", "Answer": 7.0}], mapping="svamp")
    assert found.frame.row(0)[0:1] == ("3",)
    assert found.frame["reference_answer"].to_list() == ["7.0"]

    with pytest.raises(DataError, match="prompt_id is a fraction"):
        read(tmp_path, [{"ID": 1.9, "Body": "B.", "Question": "Q?", "Answer": None}], mapping="svamp")
