"""The shared set of math answers (vectors/math_answer_cases.jsonl; its rows of hostile length are made here).

`expected` is a mathematician's reading; null marks a convention, for which either verdict will do.
"""

import json
import re
from typing import Any

import pytest

from papo.rewards import MathAnswer
from tests.golden.golden_vectors import FOLDER

MATH = MathAnswer()
ROWS: list[dict[str, Any]] = [json.loads(line) for line in (FOLDER / "math_answer_cases.jsonl").open(encoding="utf-8")]
REFERENCES: list[dict[str, str]] = [
    json.loads(line) for line in (FOLDER / "math_references.jsonl").open(encoding="utf-8")
]
"""Reference answers, one of each form, by their id: GSM8K, MATH-500, OlympiadBench, SVAMP (MIT), AIME and AMC (MAA)."""
LONG = [
    ("{" * 5000 + r"\boxed{5}", "5", True),
    ("1 " * 100_000 + r"\boxed{5}", "5", True),
    ("a" * 50 + "$x$ " * 5000 + r"\boxed{5}", "5", True),
    (rf"\boxed{{{'1' * 20_000}}}", "5", False),
    (rf"\boxed{{{'1+' * 3000}1}}", "5", False),
    (r"\boxed{1111111111}" * 5000, "5", False),
    (", ".join(map(str, range(20_000))), "5", False),
    (rf"\boxed{{{', '.join(map(str, range(500)))}}}", "5", False),
    (r"\boxed{" + r"\sqrt{" * 120 + "2" + "}" * 121, "5", False),
]


def correct(completion: str, reference: str) -> bool | None:
    return MATH(completion, reference_answer=reference, finish_reason="stop").correct


@pytest.mark.parametrize("row", [row for row in ROWS if row["expected"] is not None], ids=lambda row: str(row["id"]))
def test_the_verdict_is_a_mathematicians(row: dict[str, Any]) -> None:
    assert correct(row["answer"], row["gold"]) is row["expected"]


@pytest.mark.parametrize(("completion", "reference", "expected"), LONG)
def test_hostile_length_changes_no_verdict(completion: str, reference: str, expected: bool) -> None:
    assert correct(completion, reference) is expected


def test_the_set_tells_verifiers_apart() -> None:
    """A verifier that accepts everything, or nothing, or what math-verify 0.9.0 accepts, does not pass."""
    known = [row for row in ROWS if row["expected"] is not None]
    for verdict in (lambda row: True, lambda row: False, lambda row: row["math_verify_verdict"]):
        assert sum(verdict(row) is row["expected"] for row in known) < 0.85 * len(known)


@pytest.mark.parametrize("row", REFERENCES, ids=lambda row: row["id"])
def test_bug_061_a_reference_of_the_public_sets_is_itself_and_nothing_near_it(row: dict[str, str]) -> None:
    answer = row["answer"]
    assert MATH.check_reference(answer) is None
    assert correct(f"Therefore the answer is \\boxed{{{answer}}}. Done.", answer)
    assert correct(f"<think>hm</think><answer>{answer}</answer>", answer)
    assert not correct("\\boxed{}", answer)
    if digit := re.search(r"\d", answer):
        other = answer[: digit.start()] + str((int(digit.group()) + 1) % 10) + answer[digit.end() :]
        assert not correct(f"\\boxed{{{other}}}", answer)
        assert not correct(f"\\boxed{{-({answer})}}", answer)
