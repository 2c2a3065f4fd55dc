"""C-17: data is tried before a model is loaded."""

import json
from pathlib import Path
from typing import Any

import pytest

from papo.errors import DataError
from schemas.config import RunConfig
from tasks.scorable import try_data

COLUMNS = {"prompt": "question", "reference_answer": "answer"}


def rows(folder: Path, answers: list[str], **more: Any) -> dict[str, Any]:
    lines = [json.dumps({"question": f"What is {at}?", "answer": answer}) for at, answer in enumerate(answers)]
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
    return {"kind": "file", "path": "rows.jsonl", "columns": COLUMNS, **more}


def config(source: dict[str, Any], kind: str = "math_answer", **outcome: Any) -> RunConfig:
    return RunConfig.model_validate(
        {
            "data": {"train": source},
            "model": {"path": "model"},
            "reward": {"outcome": {"kind": kind, **outcome}},
            "algorithm": {"advantage": {"kind": "grpo"}},
        }
    )


GSM8K = [f"He has {at} + 1 = <<{at}+1={at + 1}>>{at + 1}.\n#### {at + 1}" for at in range(20)]


def test_c_17_references_of_gsm8k_are_told_the_mapping(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        try_data(config(rows(tmp_path, GSM8K)), tmp_path)
    said = str(raised.value)
    for part in ("data.train: rows.jsonl", "20 of the 20 references", "row 0: ", "mapping: gsm8k"):
        assert part in said
    mapped = {"kind": "file", "path": "rows.jsonl", "mapping": "gsm8k"}
    assert try_data(config(mapped), tmp_path).warnings == []


def test_c_17_a_few_that_cannot_be_read_are_a_warning(tmp_path: Path) -> None:
    answers = [str(at) for at in range(40)]
    answers[7] = GSM8K[0]
    (warning,) = try_data(config(rows(tmp_path, answers)), tmp_path).warnings
    assert "1 of the 40 references" in warning
    assert "row 7" in warning


def test_c_17_both_splits_are_held_to_what_judges_them(tmp_path: Path) -> None:
    asked = config(rows(tmp_path, ["1", "2"]))
    evaluation = {"outcome": {"kind": "zebra_grid"}}
    data = {"train": asked.data.train, "evaluation": asked.data.train}
    both = RunConfig.model_validate({**asked.model_dump(), "data": data, "evaluation": evaluation})
    with pytest.raises(DataError, match=r"data\.evaluation: rows\.jsonl: zebra_grid can judge nothing"):
        try_data(both, tmp_path)


def test_c_17_a_custom_reward_that_raises_on_the_rows_is_found(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def f(completion, reference_answer, finish_reason):\n    return float(reference_answer == '2')\n")
    source = rows(tmp_path, ["1", "2"])
    assert try_data(config(source, "custom", target=f"{file}:f"), tmp_path).warnings == []
    other = tmp_path / "other.py"
    other.write_text("def f(completion, reference_answer, finish_reason):\n    return {'2': 1.0}[reference_answer]\n")
    with pytest.raises(DataError, match="the reward raised KeyError"):
        try_data(config(rows(tmp_path, ["1", "3"]), "custom", target=f"{other}:f"), tmp_path)


def test_c_17_more_rows_than_there_are_cannot_be_taken(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"take is 200, but rows\.jsonl has 3 rows"):
        try_data(config(rows(tmp_path, ["1", "2", "3"], take=200)), tmp_path)
