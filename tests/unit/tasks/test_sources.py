"""Data sources: every row as the file has it or refused, all faults in one report, hashes of what training gets."""

import json
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.chains import ChainTask
from papo.errors import DataError
from schemas.config import RunConfig
from schemas.data import ChainsSource, FileSource
from tasks.run import RawData
from tasks.runfile import RunFile, check_sources
from tasks.sources import COLUMNS, read_source, read_sources

ROWS: list[dict[str, Any]] = [
    {"prompt": "1+1=", "answer": "2", "id": "a", "source": "x"},
    {"prompt": "2+2=", "answer": "4", "id": "b", "source": "x"},
    {"prompt": "3+3=", "answer": "6", "id": "c", "source": "x"},
]


def write(folder: Path, rows: Sequence[Any], name: str = "rows.jsonl") -> Path:
    path = folder / name
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def read(folder: Path, rows: Sequence[Any] = ROWS, *, split: str = "train", **source: Any) -> RawData:
    write(folder, rows)
    return read_source(FileSource.model_validate({"path": "rows.jsonl", **source}), folder, split=split)


def read_parquet(folder: Path, frame: pl.DataFrame, **source: Any) -> RawData:
    frame.write_parquet(folder / "rows.parquet")
    return read_source(FileSource.model_validate({"path": "rows.parquet", **source}), folder, split="train")


def report(folder: Path, rows: Sequence[Any], **source: Any) -> str:
    with pytest.raises(DataError) as raised:
        read(folder, rows, **source)
    return str(raised.value)


def with_(row: int, **fields: Any) -> list[dict[str, Any]]:
    return [old | (fields if number == row else {}) for number, old in enumerate(ROWS)]


def test_rows_are_taken_as_they_are(tmp_path: Path) -> None:
    data = read(tmp_path)

    assert data.frame.schema == COLUMNS
    assert data.frame.to_dict(as_series=False) == {
        "prompt_id": ["0", "1", "2"],
        "source": ["train"] * 3,
        "prompt": ["1+1=", "2+2=", "3+3="],
        "is_messages": [False, False, False],
        "reference_answer": ["2", "4", "6"],
    }


def test_skip_and_take_count_rows_and_keep_their_numbers(tmp_path: Path) -> None:
    data = read(tmp_path, [ROWS[0], "", ROWS[1], "  ", ROWS[2]], skip=1, take=1)

    assert data.frame["prompt_id"].to_list() == ["1"]
    assert data.frame["prompt"].to_list() == ["2+2="]


def test_columns_are_mapped(tmp_path: Path) -> None:
    rows = [{"q": "1+1=", "gold": 2, "n": 7}, {"q": "2+2=", "gold": 4, "n": 8}]

    columns = {"prompt": "q", "reference_answer": "gold", "prompt_id": "n"}
    data = read(tmp_path, rows, columns=columns)

    assert data.frame["prompt_id"].to_list() == ["7", "8"]
    assert data.frame["reference_answer"].to_list() == ["2", "4"]


@pytest.mark.parametrize(
    ("spelled", "stored"),
    [("7", "7"), ("7.0", "7.0"), ("7e2", "7e2"), ("-0", "-0"), ("0.10", "0.10"), ("1" * 400, "1" * 400), ('"7"', "7")],
)
def test_a_number_keeps_its_spelling(tmp_path: Path, spelled: str, stored: str) -> None:
    """BUG-129: gold 7 is "7" and 7.0 is "7.0", by a written rule."""
    data = read(tmp_path, [f'{{"prompt": "x", "answer": {spelled}}}'])

    assert data.frame["reference_answer"].to_list() == [stored]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "reference_answer is null"),
        (True, "reference_answer is true or false"),
        (["7"], "reference_answer is a list"),
        ({"a": 1}, "reference_answer is an object"),
        ("", "reference_answer is blank"),
        (" \n", "reference_answer is blank"),
    ],
)
def test_an_answer_of_another_kind_is_refused(tmp_path: Path, answer: Any, said: str) -> None:
    """BUG-129, BUG-130: nothing is turned into a word; a blank gold answer is no answer."""
    assert f"{said}" in report(tmp_path, with_(1, answer=answer))
    assert "line 2" in report(tmp_path, with_(1, answer=answer))


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        (None, "prompt is null"),
        (7, "prompt is a number"),
        (False, "prompt is true or false"),
        ({"role": "user", "content": "x"}, "prompt is an object"),
        ("", "prompt is blank"),
        ("\t", "prompt is blank"),
        ([], "prompt has no messages"),
        (["x"], "prompt has a message that is text"),
        ([{"role": "user"}], "message whose content is null"),
        ([{"role": "user", "content": " "}], "message whose content is blank"),
        ([{"role": "user", "content": ["x"]}], "message whose content is a list"),
        ([{"role": "User", "content": "x"}], "role is none of system, user, assistant"),
        ([{"role": "user", "content": "x", "name": "n"}], "1 fields beside role and content"),
        ([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}], "not the user's"),
    ],
)
def test_a_prompt_of_another_kind_is_refused(tmp_path: Path, prompt: Any, said: str) -> None:
    assert said in report(tmp_path, with_(2, prompt=prompt))


def test_messages_are_stored_in_one_spelling(tmp_path: Path) -> None:
    messages = [{"content": "be brief", "role": "system"}, {"role": "user", "content": "x²?"}]

    data = read(tmp_path, [{"prompt": messages, "answer": "1"}])

    assert data.frame["is_messages"].to_list() == [True]
    assert json.loads(data.frame["prompt"][0]) == messages
    turned = [dict(reversed(message.items())) for message in messages]
    assert read(tmp_path, [{"prompt": turned, "answer": "1"}]).sha256 == data.sha256


@pytest.mark.parametrize(
    "text", ["\x00", "a\u2028b", "\ufeffx", "e\u0301 é", "\U0001f600", "﷐", "x" * 100_000, "\r\n."]
)
def test_any_text_is_stored_reversibly(tmp_path: Path, text: str) -> None:
    data = read(tmp_path, [{"prompt": f"{text}?", "answer": f"{text}!"}])
    data.frame.write_parquet(tmp_path / "stored.parquet")
    stored = pl.read_parquet(tmp_path / "stored.parquet")

    assert stored["prompt"].to_list() == [f"{text}?"]
    assert stored["reference_answer"].to_list() == [f"{text}!"]


def test_half_a_surrogate_pair_is_refused_by_name(tmp_path: Path) -> None:
    row = '{"prompt": "x \\ud83d y", "answer": "\\udc00"}'

    message = report(tmp_path, [ROWS[0], row])

    assert "prompt has half of a surrogate pair" in message
    assert "reference_answer has half of a surrogate pair" in message
    assert read(tmp_path, ['{"prompt": "\\ud83d\\ude00", "answer": "1"}']).frame["prompt"].to_list() == ["\U0001f600"]


def test_a_file_with_many_faults_lists_them_all(tmp_path: Path) -> None:
    """BUG-130: one report with every kind of fault and the rows it is in, and none of their contents."""
    rows = [
        {"prompt": "the contents", "answer": None},
        '{"prompt": "the contents", "answer"',
        {"prompt": " ", "answer": ""},
        {"question": "the contents", "answer": "1"},
        "[1]",
        ROWS[0],
        {"prompt": "x", "answer": None},
        '{"prompt": "x", "answer": NaN}',
        '{"prompt": "x", "answer": "1", "answer": "2"}',
    ]

    message = report(tmp_path, rows)

    lines = message.splitlines()
    assert lines[0].startswith("data.train: ")
    assert "rows.jsonl (prompt from column 'prompt', reference_answer from column 'answer') has 9 faults" in lines[0]
    assert "  reference_answer is null: use text or a number: line 1, line 7" in lines
    assert any("not JSON" in line and line.endswith("line 2") for line in lines)
    assert "  prompt is blank: line 3" in lines
    assert "  reference_answer is blank: line 3" in lines
    assert "  no column 'prompt': line 4. The columns are question, answer." in lines
    assert "  not a JSON object: line 5" in lines
    assert "  not JSON (NaN is no JSON number): line 8" in lines
    assert "  not JSON (a column stands twice in it): line 9" in lines
    assert "the contents" not in message


def test_many_rows_with_one_fault_are_counted(tmp_path: Path) -> None:
    message = report(tmp_path, [{"prompt": f"{row}", "answer": ""} for row in range(25)])

    assert "line 10 and 15 more" in message
    assert "line 11" not in message


def test_both_splits_are_in_one_report(tmp_path: Path) -> None:
    write(tmp_path, with_(0, answer=""), "train.jsonl")
    write(tmp_path, with_(1, prompt=None), "test.jsonl")

    with pytest.raises(DataError, match=r"(?s)data\.train: .*blank.*data\.evaluation: .*null"):
        read_sources(config(train="train.jsonl", evaluation="test.jsonl"), tmp_path)


@pytest.mark.parametrize("rows", [[], [""], ["", "  "]])
def test_zero_rows_are_refused(tmp_path: Path, rows: list[str]) -> None:
    """BUG-130: an empty source never passes."""
    assert "has no rows" in report(tmp_path, rows)


def test_zero_rows_left_are_refused(tmp_path: Path) -> None:
    assert "has no rows after the 3" in report(tmp_path, ROWS, skip=3)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").touch()
    (tmp_path / "rows.parquet").write_text("no parquet")
    for name, said in (("no.jsonl", "does not exist"), ("rows.csv", "neither"), ("rows.parquet", "no Parquet file")):
        with pytest.raises(DataError, match=said):
            read_source(FileSource(path=name), tmp_path, split="train")
    (tmp_path / "rows.jsonl").write_bytes(b'{"prompt": "\xe9", "answer": "1"}\n')
    with pytest.raises(DataError, match="not UTF-8: line 1"):
        read_source(FileSource(path="rows.jsonl"), tmp_path, split="train")


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(ROWS[0]).encode())

    assert read_source(FileSource(path="rows.jsonl"), tmp_path, split="train").frame.height == 1


def test_a_huge_row_is_refused_before_anything_looks_into_it(tmp_path: Path) -> None:
    """BUG-043: one prompt of 20 MB among 1,000 small ones costs seconds at most and little memory."""
    rows: list[Any] = [{"prompt": f"{row}", "answer": "1"} for row in range(1000)]
    rows.insert(500, {"prompt": "x" * 20_000_000, "answer": "1"})
    write(tmp_path, rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(DataError, match="longer than 1000000 bytes: line 501"):
        read_source(FileSource(path="rows.jsonl"), tmp_path, split="train")

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
    with pytest.raises(DataError, match="longer than 1000000 bytes: row 1"):
        read_parquet(tmp_path, pl.DataFrame({"prompt": ["a", "x" * 1_000_001], "answer": ["1", "2"]}))


def test_ids_must_be_texts_or_whole_numbers_and_unique(tmp_path: Path) -> None:
    columns = {"columns": {"prompt_id": "id"}}

    assert "prompt_id is that of an earlier row: line 3 (as line 1)" in report(tmp_path, with_(2, id="a"), **columns)
    assert "prompt_id is that of an earlier row" in report(
        tmp_path, [*with_(2, id="7"), ROWS[1] | {"id": 7}], **columns
    )
    assert "prompt_id is a fraction" in report(tmp_path, with_(2, id=1.5), **columns)
    assert "prompt_id is null" in report(tmp_path, with_(2, id=None), **columns)
    assert "prompt_id is blank" in report(tmp_path, with_(2, id=" "), **columns)
    assert "no column 'id': line 3" in report(tmp_path, [*ROWS[:2], {"prompt": "x", "answer": "1"}], **columns)


def test_equal_training_prompts_must_have_equal_answers(tmp_path: Path) -> None:
    """BUG-132's cheap half: the same question with two gold answers is an error; spelled otherwise it is the same."""
    twice = [*ROWS, {"prompt": "1+1=", "answer": "3"}]

    assert "another reference answer: line 4 (as line 1)" in report(tmp_path, twice)
    assert read(tmp_path, [*ROWS, {"prompt": "1+1=", "answer": "2.0"}]).frame.height == 4
    assert read(tmp_path, twice, split="evaluation").frame.height == 4


def test_each_prompt_keeps_its_own_answer(tmp_path: Path) -> None:
    """BUG-135: rows stay whole under a mapping, a choice of rows and any order."""
    rows = [{"prompt": f"{row}+0=", "answer": row} for row in (3, 0, 2, 1, 5, 4)]

    data = read(tmp_path, rows, skip=1, take=4)

    assert data.frame["prompt"].to_list() == ["0+0=", "2+0=", "1+0=", "5+0="]
    assert all(prompt == f"{answer}+0=" for _, _, prompt, _, answer in data.frame.iter_rows())


def test_parquet_gives_what_json_lines_give(tmp_path: Path) -> None:
    rows = [row | {"answer": number, "extra": 1.5} for number, row in enumerate(ROWS)]

    from_json, from_parquet = read(tmp_path, rows), read_parquet(tmp_path, pl.DataFrame(rows))

    assert from_parquet.frame.equals(from_json.frame)
    assert from_parquet.sha256 == from_json.sha256
    sliced = read_parquet(tmp_path, pl.DataFrame(rows), skip=1, take=1)
    assert sliced.frame.equals(read(tmp_path, rows, skip=1, take=1).frame)


def test_parquet_values_are_not_converted(tmp_path: Path) -> None:
    """BUG-129"""
    frame = pl.DataFrame({"prompt": ["a", "b", "c"], "answer": [7.0, float("nan"), None]})

    with pytest.raises(DataError) as raised:
        read_parquet(tmp_path, frame)

    assert "reference_answer is a float: use text or a number: row 1" in str(raised.value)
    assert "reference_answer is null: use text or a number: row 2" in str(raised.value)
    assert read_parquet(tmp_path, frame.head(1)).frame["reference_answer"].to_list() == ["7.0"]
    with pytest.raises(DataError, match="reference_answer is a date"):
        read_parquet(tmp_path, pl.DataFrame({"prompt": ["a"], "answer": ["2026-01-01"]}).with_columns(
            pl.col("answer").str.to_date()))  # fmt: skip
    with pytest.raises(DataError, match=r"no column 'answer': row 0, row 1\. The columns are prompt, gold\."):
        read_parquet(tmp_path, pl.DataFrame({"prompt": ["a", "b"], "gold": ["1", "2"]}))
    with pytest.raises(DataError, match=r"no column 'prompt': row 0"):
        read_parquet(tmp_path, pl.DataFrame({"q": ["a", "b"], "gold": ["1", "2"]}))


def test_messages_of_a_parquet_file(tmp_path: Path) -> None:
    """Its structs have every field in every message; null is a field that a message lacks."""
    prompt = [[{"role": "user", "content": "x", "name": None}], [{"role": "user", "content": "y", "name": None}]]

    data = read_parquet(tmp_path, pl.DataFrame({"prompt": prompt, "answer": ["1", "2"]}))

    assert json.loads(data.frame["prompt"][1]) == [{"role": "user", "content": "y"}]


def test_the_hash_is_of_the_rows_that_training_gets(tmp_path: Path) -> None:
    whole, sha256 = read(tmp_path).sha256, read(tmp_path, take=2).sha256

    assert read(tmp_path, with_(1, answer="5"), take=2).sha256 != sha256
    assert read(tmp_path, with_(1, prompt="2 + 2 ="), take=2).sha256 != sha256
    assert read(tmp_path, [ROWS[1], ROWS[0]], take=2).sha256 != sha256
    assert whole != sha256
    assert read(tmp_path, columns={"prompt_id": "id"}).sha256 != whole
    assert read(tmp_path, with_(2, answer="5"), take=2).sha256 == sha256
    assert read(tmp_path, with_(1, source="y"), take=2).sha256 == sha256


def test_a_repaired_row_is_noticed_at_resume(tmp_path: Path) -> None:
    """BUG-134: never the old row silently."""
    begun = RunFile(run_id="x", base=str(tmp_path), model="m", sources={"train": read(tmp_path).sha256}, epochs=())
    check_sources(begun, {"train": read(tmp_path).sha256}, {"train": "rows.jsonl"})

    with pytest.raises(DataError, match=r"data\.train \(rows\.jsonl\) has changed since run x began"):
        check_sources(begun, {"train": read(tmp_path, with_(0, answer="3")).sha256}, {"train": "rows.jsonl"})


def config(*, train: str, evaluation: str | None = None) -> RunConfig:
    named = {"train": train, **({"evaluation": evaluation} if evaluation else {})}
    return RunConfig.model_validate(
        {
            "data": {split: {"kind": "file", "path": path} for split, path in named.items()},
            "model": {"path": "somewhere"},
            "reward": {"outcome": {"kind": "answer_match"}},
        }
    )


def test_a_run_reads_the_splits_that_it_has(tmp_path: Path) -> None:
    write(tmp_path, ROWS)

    assert set(read_sources(config(train="rows.jsonl"), tmp_path)) == {"train"}
    both = read_sources(config(train="rows.jsonl", evaluation="rows.jsonl"), tmp_path)
    assert both["train"].sha256 == both["evaluation"].sha256


def test_chains_are_made_by_their_seed(tmp_path: Path) -> None:
    source = ChainsSource(task=ChainTask(steps=2), count=20)
    data = read_source(source, tmp_path, split="train")

    problems = source.task.problems(0, 20, "train")
    assert data.frame.schema == COLUMNS
    assert data.frame["prompt"].to_list() == [problem.prompt for problem in problems]
    assert data.frame["reference_answer"].to_list() == [problem.reference_answer for problem in problems]
    assert data.frame["prompt_id"].is_unique().all()
    assert read_source(source, tmp_path, split="train").sha256 == data.sha256
    others = [source.model_copy(update=update) for update in ({"seed": 1}, {"split": "heldout"}, {"count": 19})]
    assert len({data.sha256, *(read_source(other, tmp_path, split="train").sha256 for other in others)}) == 4


def test_more_chains_than_there_are(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.evaluation cannot be made: count is 1000 but the heldout split"):
        read_source(ChainsSource(task=ChainTask(steps=1), count=1000, split="heldout"), tmp_path, split="evaluation")
