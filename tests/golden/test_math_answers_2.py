"""C-24, C-25: final answers as models write them, labelled before any checker ran.

vectors/math_answer_cases_2.jsonl: 446 rows of the shared set (thinking tags, several boxes, units, words, sets, near
misses, whole-number symbols). vectors/math_answers_by_hand.jsonl: 393 rows of these and other kinds, thought up and
labelled by hand with mathematics alone, before a checker saw them; `expected` null marks a convention.
"""

import json
from typing import Any

import pytest

from papo.rewards import MathAnswer
from tests.golden.golden_vectors import FOLDER

MATH = MathAnswer()
CONVENTIONS: dict[str, str] = {
    "own-a-a187": "25% is not 25: the value of 25% is 1/4 (`percent: unit` takes it), and 7 percent is not 7 either"
}
"""Rows where the verdict differs from the label on purpose, by their id."""
MOST_CONVENTIONS = 5
LEAST_AGREEMENT = 0.97


def rows_of(name: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").open(encoding="utf-8")]
    return [row for row in rows if row["expected"] is not None]


SHARED = rows_of("math_answer_cases_2")
BY_HAND = rows_of("math_answers_by_hand")


def correct(row: dict[str, Any]) -> bool | None:
    return MATH(row["answer"], reference_answer=row["gold"], finish_reason="stop").correct


@pytest.mark.parametrize("row", SHARED + BY_HAND, ids=lambda row: str(row["id"]))
def test_c_24_c_25_the_verdict_is_the_label_or_a_convention(row: dict[str, Any]) -> None:
    assert (correct(row) is row["expected"]) is (row["id"] not in CONVENTIONS)


def test_the_conventions_are_few_and_none_accepts_what_is_wrong() -> None:
    differing = [row for row in SHARED + BY_HAND if row["id"] in CONVENTIONS]
    assert len(differing) == len(CONVENTIONS) <= MOST_CONVENTIONS
    assert all(row["expected"] is True for row in differing)
    assert 1 - len(differing) / len(SHARED) >= LEAST_AGREEMENT


def test_percent_as_a_unit_is_the_other_convention() -> None:
    row = next(row for row in SHARED if row["id"] == "own-a-a187")
    unit = MathAnswer(percent="unit")
    assert unit(row["answer"], reference_answer=row["gold"], finish_reason="stop").correct


def test_the_sets_have_answers_of_both_kinds() -> None:
    for rows in (SHARED, BY_HAND):
        assert 0.25 < sum(row["expected"] for row in rows) / len(rows) < 0.75
