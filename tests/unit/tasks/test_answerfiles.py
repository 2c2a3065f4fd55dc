"""`papo verify`: verdicts in the order of the rows, and every fault of a file at once."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.cli import app
from papo.errors import DataError
from papo.rewards import AnswerMatch, MathAnswer
from tasks.answerfiles import Figures, verify_answers
from tasks.references import unusable

ROWS: list[dict[str, Any]] = [
    {"id": 7, "reference_answer": "1/2", "completion": r"so \boxed{0.5}"},
    {"id": "b", "reference_answer": 3, "completion": "The answer is 4.", "more": "ignored"},
    {"id": "c", "reference_answer": "5 cm", "completion": r"\boxed{0.05 m}", "task": None},
    {"id": "d", "reference_answer": "5 cm", "completion": r"\boxed{0.05 m}", "task": "answer_match"},
    {"id": "e", "reference_answer": "the answer is unknowable", "completion": "1"},
    {"id": "f", "reference_answer": "5", "completion": ""},
    {"id": "g", "reference_answer": "5", "completion": "\ud800\x00\\boxed{5}"},
]


def written(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def verified(tmp_path: Path, rows: list[Any], reward: Any = None) -> tuple[Figures, list[dict[str, Any]]]:
    output = tmp_path / "out.jsonl"
    seen: list[tuple[int, int]] = []
    figures = verify_answers(
        written(tmp_path / "in.jsonl", rows), output, reward or MathAnswer(), progress=lambda *at: seen.append(at)
    )
    assert seen == [(count + 1, len(rows)) for count in range(len(rows))]
    return figures, [json.loads(line) for line in output.read_text().splitlines()]


def test_one_verdict_a_row_in_their_order(tmp_path: Path) -> None:
    figures, found = verified(tmp_path, ROWS)
    assert [row["id"] for row in found] == [7, "b", "c", "d", "e", "f", "g"]
    assert [row["correct"] for row in found] == [True, False, True, False, None, False, True]
    assert [row["reward"] for row in found] == [1.0, 0.0, 1.0, 0.0, None, 0.0, 1.0]
    assert [row["status"] for row in found] == ["ok", "ok", "ok", "ok", "unscorable", "no_answer", "ok"]
    assert (found[0]["extracted"], found[0]["canonical"]) == ("0.5", "1/2")
    assert [row["verifier_version"].partition(" ")[0] for row in found[2:4]] == ["math_answer/2", "answer_match/2"]
    assert (figures.rows, figures.correct, figures.undecided) == (7, 3, 1)


def test_many_rows_stay_in_order(tmp_path: Path) -> None:
    rows = [{"id": number, "reference_answer": str(number % 7), "completion": str(number)} for number in range(500)]
    _, found = verified(tmp_path, rows)
    assert [(row["id"], row["correct"]) for row in found] == [(n, n == n % 7) for n in range(500)]


def test_another_reward_judges_rows_without_a_task(tmp_path: Path) -> None:
    _, found = verified(tmp_path, ROWS[:4], AnswerMatch())
    assert [row["correct"] for row in found] == [True, False, False, False]


def test_every_fault_is_reported_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    rows = [
        {"id": 1}, "not json", {"id": 1, "reference_answer": [], "completion": 3, "task": "chess"}, {"completion": "x"},
        {"id": 1.5, "reference_answer": "1", "completion": "1"}, "[1]",
    ]  # fmt: skip
    with pytest.raises(DataError) as caught:
        verified(tmp_path, rows)
    for part in (
        "reference_answer is missing: line 1, line 4", "completion is missing: line 1", "not JSON", "line 2",
        "id is that of an earlier row: line 3", "reference_answer is a list", "completion is a number",
        "task is none of", "id is missing: line 4", "id is a fraction", "not a JSON object: line 6",
    ):  # fmt: skip
        assert part in str(caught.value)
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("output", "message"), [("in.jsonl", "is the file that is read"), ("no/out.jsonl", "cannot be written")]
)
def test_outputs_that_will_not_do(tmp_path: Path, output: str, message: str) -> None:
    source = written(tmp_path / "in.jsonl", ROWS)
    with pytest.raises(DataError, match=message):
        verify_answers(source, tmp_path / output, MathAnswer(), progress=lambda *_: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_an_empty_file_has_nothing_to_verify(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no rows"):
        verified(tmp_path, [])


def test_the_command_says_what_came_of_it(tmp_path: Path) -> None:
    source, output = written(tmp_path / "in.jsonl", ROWS), tmp_path / "out.jsonl"
    done = CliRunner().invoke(app, ["verify", str(source), "--output", str(output)])
    assert done.exit_code == 0
    assert "3 correct, 50.0% of the 6 that were decided" in done.stderr
    assert len(output.read_text().splitlines()) == len(ROWS)
    failed = CliRunner().invoke(app, ["verify", str(tmp_path / "none.jsonl"), "--output", str(output)])
    assert failed.exit_code == 2


def test_references_that_do_not_verify_against_themselves_are_listed(tmp_path: Path) -> None:
    """BUG-061: exit 4, as for every check that found something."""
    good = [{"answer": "1/2"}, {"answer": 7}, {"answer": "Tuesday"}]
    bad = [{"answer": "the answer is unknowable"}, {"answer": None}, {"other": "1"}]
    passed = CliRunner().invoke(app, ["verify", str(written(tmp_path / "a.jsonl", good)), "--references", "answer"])
    assert (passed.exit_code, passed.stderr) == (0, "3 of 3 references verify against themselves.\n")
    failed = CliRunner().invoke(
        app, ["verify", str(written(tmp_path / "b.jsonl", good + bad)), "--references", "answer"]
    )
    assert failed.exit_code == 4
    lines = failed.stderr.splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == ["line 4", "line 5", "line 6"]
    assert lines[3] == "3 of 6 references verify against themselves."


def test_the_command_does_one_thing(tmp_path: Path) -> None:
    source = str(written(tmp_path / "in.jsonl", ROWS))
    assert CliRunner().invoke(app, ["verify", source]).exit_code == 2
    assert CliRunner().invoke(app, ["verify", source, "--output", "x", "--references", "answer"]).exit_code == 2


def test_a_task_that_cannot_be_judged_here_is_a_fault_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file would else come back with every row of that task undecided."""
    monkeypatch.setattr("papo.rewards.reasoning_gym.installed", lambda: None)
    unusable.cache_clear()
    try:
        with pytest.raises(DataError, match=r"task reasoning_gym cannot be judged here: .* is not installed"):
            verified(tmp_path, [*ROWS[:1], {**ROWS[1], "task": "reasoning_gym"}])
        source = written(tmp_path / "rows.jsonl", [{"prompt": "a", "answer": "b"}])
        result = CliRunner().invoke(app, ["data", "check", str(source), "--task", "reasoning_gym"])
        assert result.exit_code == 2
    finally:
        unusable.cache_clear()
