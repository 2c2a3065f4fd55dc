"""Programs' tests as data sets spell them: one form after reading, or a fault with its row; never a reward beyond 1."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.errors import DataError
from papo.rewards import CodeTests
from papo.rewards.codecases import read_tests
from schemas.data import FileSource
from tasks.sources import read_source

CALLS = {"fn_name": "f", "inputs": [[1, [2.5]], [3, []]], "outputs": [[3.5], 3]}
RECORDS = [{"input": "1", "output": "2"}, {"input": "2", "output": "3"}]


def references(folder: Path, golds: list[Any], *, parquet: bool = False) -> list[str]:
    rows = [{"question": f"Q{place}", "input_output": gold} for place, gold in enumerate(golds)]
    name = "rows.parquet" if parquet else "rows.jsonl"
    if parquet:
        pl.DataFrame(rows).write_parquet(folder / name)
    else:
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    source = FileSource.model_validate({"path": name, "mapping": "apps"})
    return read_source(source, folder, split="train").frame["reference_answer"].to_list()


def test_bug_080_tests_as_text_object_or_list_are_one_form(tmp_path: Path) -> None:
    found = references(tmp_path, [json.dumps(CALLS), CALLS, RECORDS, json.dumps(RECORDS)])
    assert [json.loads(text) for text in found] == [CALLS, CALLS, RECORDS, RECORDS]
    assert [CodeTests().check_reference(text) for text in found] == [None] * 4
    assert read_tests(found[0]) == read_tests(found[1])
    columns = {"inputs": ["1"], "outputs": ["2"]}
    assert [json.loads(text) for text in references(tmp_path, [columns], parquet=True)] == [columns]


def test_bug_080_golds_that_hold_no_tests_are_named_before_a_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"reference_answer is null.*: line 2"):
        references(tmp_path, [json.dumps(CALLS), None])
    for gold in (7, "7", '["1", "2"]', ["1", "2"]):
        (text,) = references(tmp_path, [gold])
        assert CodeTests().check_reference(text) is not None


@pytest.mark.parametrize("aggregate", ["all", "share"])
def test_bug_080_several_golds_never_sum_up_above_one(aggregate: Any, tmp_path: Path) -> None:
    reward = CodeTests(aggregate=aggregate, cpu_seconds=4.0)
    (text,) = references(tmp_path, [RECORDS])
    for program, earned in (("print(int(input()) + 1)", 1.0), ("print(2)", 0.5 if aggregate == "share" else 0.0)):
        assert reward(program, reference_answer=text, finish_reason="stop").accuracy == earned
