from typing import Any

import pytest

from papo.rewards import MathAnswer
from papo.rewards.format import FormatReward

MATH = MathAnswer()


def judge(completion: str, reference: str, rule: MathAnswer = MATH, finish_reason: str = "stop") -> Any:
    return rule(completion, reference_answer=reference, finish_reason=finish_reason)


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("8000", "8,000"), ("8,000", "8000"), ("9500", "9{,}500"), ("1234.50", "$1,234.50"), ("1234", "1 234"),
        ("72", "72, altogether"), ("-3", "\u22123"), ("72", "\uff17\uff12"), ("3", "3.0"),
    ],
)  # fmt: skip
def test_bug_058_separators(reference: str, answer: str) -> None:
    expected = reference != "72" or "altogether" not in answer
    assert judge(rf"\boxed{{{answer}}}", reference).correct is expected


def test_bug_058_signs_count() -> None:
    assert judge(r"\boxed{-3}", "3").correct is False
    assert judge(r"\boxed{000}", "8,000").correct is False


def test_a_right_answer_says_what_was_found() -> None:
    verdict = judge(r"thus \boxed{\frac{3}{4}}", "0.75")
    assert (verdict.accuracy, verdict.correct, verdict.status) == (1.0, True, "ok")
    assert (verdict.extracted, verdict.canonical) == (r"\frac{3}{4}", "3/4")


def test_no_answer_is_wrong_with_its_own_status() -> None:
    verdict = judge("I really could not say anything about it", "7")
    assert (verdict.accuracy, verdict.status, verdict.extracted) == (0.0, "no_answer", None)


def test_bug_056_an_unreadable_reference_pays_nobody() -> None:
    for completion in ("the answer is unknowable", r"\boxed{the answer is unknowable}", r"\boxed{7}", ""):
        verdict = judge(completion, "the answer is unknowable")
        assert (verdict.accuracy, verdict.correct, verdict.status) == (None, None, "unscorable")


def test_truncated_completions_follow_the_setting() -> None:
    cut = judge(r"\boxed{7}", "7", finish_reason="length")
    assert (cut.accuracy, cut.status, cut.extracted) == (0.0, "truncated", "7")
    assert judge(r"\boxed{7}", "7", MathAnswer(truncated="score"), finish_reason="length").accuracy == 1.0


def test_the_strict_order_pays_no_mention() -> None:
    strict = MathAnswer(extract=("boxed",))
    assert judge("So the answer is 42.", "42").correct
    assert not judge("So the answer is 42.", "42", strict).correct
    assert judge(r"So \boxed{42}.", "42", strict).correct


def test_references_are_checked_against_themselves() -> None:
    """BUG-061."""
    assert MATH.check_reference(r"\frac{1}{2}") is None
    assert MATH.check_reference("Tuesday") is None
    assert "prose" in str(MATH.check_reference("perhaps somewhere beyond the horizon"))
    assert "cannot be read" in str(MATH.check_reference(r"\frac{1}{"))
    assert "blank" in str(MATH.check_reference(" "))


def test_the_version_holds_every_setting_and_every_engine() -> None:
    versions = {
        rule.version
        for rule in (MATH, MathAnswer(percent="unit"), MathAnswer(extract=("boxed",)), MathAnswer(tolerance=0.1))
    }
    assert len(versions) == 4
    assert all(name in MATH.version for name in ("math_answer/2", "math-verify=", "mpmath=", "sympy="))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"extract": ()}, "extract is empty"),
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"relative_tolerance": float("nan")}, "relative_tolerance is nan"),
        ({"cpu_seconds": 0.0}, "cpu_seconds is 0.0"),
    ],
)
def test_settings_without_meaning_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MathAnswer(**fields)


def test_format_and_correctness_are_apart() -> None:
    """BUG-063: a multi-line think block and Windows line ends; the answer in the tag is the same."""
    completion = "<think>a\r\nb</think>\r\n<answer>7</answer>"
    assert FormatReward()(completion) == 1.0
    assert judge(completion, "7").correct
    assert judge("<think>a</think><answer>8</answer>", "7").correct is False
