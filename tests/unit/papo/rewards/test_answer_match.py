import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papo.rewards import AnswerMatch, MathAnswer, MultipleChoice
from papo.rewards.answers import last_answer_tag, last_boxed, normalize_answer, parse_number

EXACT = AnswerMatch()


def judge(completion: str, gold: str, rule: AnswerMatch = EXACT, finish_reason: str = "stop") -> float | None:
    return rule(completion, reference_answer=gold, finish_reason=finish_reason).accuracy


def boxed(answer: str) -> str:
    return f"so it is \\boxed{{{answer}}}."


@pytest.mark.parametrize("joining", [" or ", ", ", "$ and $", "\n或", r" \text{ or } ", "；"])
def test_boxes_that_are_joined_are_one_answer(joining: str) -> None:
    for rule in (EXACT, MultipleChoice(), MathAnswer()):
        both = f"$\\boxed{{B}}{joining}\\boxed{{A}}$"
        assert rule(both, reference_answer="A", finish_reason="stop").accuracy == 0.0
    assert judge("\\boxed{A}, as said. So \\boxed{A}", "A") == 1.0


def test_many_joined_boxes_take_no_longer_than_they_are() -> None:
    assert last_boxed("\\boxed{1}," * 100_000 + "\\boxed{2}") == "1 , " * 100_000 + "2"


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("7", "7.0"), ("1000", "1,000"), ("1,000", "1000.00"), ("3/4", "0.75"), ("3/4", "\\frac{3}{4}"),
        ("3/4", "\\dfrac34"), ("-2/5", "-\\frac{2}{5}"), ("-2/5", "\\frac{-2}{5}"), ("8000", "8,000"),
        ("9500", "9{,}500"), ("1234.5", "$1,234.50"), ("1234", "1 234"), ("1234", "1\\,234"), ("-3", "\u22123"),
        ("72", "\uff17\uff12"), (".5", "0.5"), ("5", "\\boxed{5}"), ("5", "$5$"), ("5", "\\(5\\)"), ("5", " 5. "),
        ("0", "-0"), ("1/2", "\u0031\u20442"), ("+3", "3"), ("x+1", "x+1"), ("x + 1", "x  +\n1"),
        ("(3, 4)", "\\left(3, 4\\right)"), ("Monday", "\\text{Monday}"),
    ],
)  # fmt: skip
def test_equal_by_the_written_rule(gold: str, answer: str):
    """BUG-058 among others; both sides go through the same table, so it holds the other way round as well."""
    assert judge(boxed(answer), gold) == 1.0
    assert normalize_answer(gold) == normalize_answer(answer)


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("7", "5=7"), ("7", "3 or 7"), ("7", "7 or 3"), ("3", "-3"), ("1/3", "0.333"), ("102", "10\u00b2"),
        ("31/2", "3\u00bd"),
        ("72", "7 2"), ("8000", "000"), ("12", "1,2"), ("7", ""), ("7", "x=7"), ("1/0", "0"), ("monday", "Monday"),
    ],
)  # fmt: skip
def test_different_by_the_written_rule(gold: str, answer: str):
    assert judge(boxed(answer), gold) == 0.0


@pytest.mark.parametrize(
    ("completion", "found"),
    [
        (r"\boxed{1} then \boxed{2}", "2"),
        (r"\boxed{2} then \boxed{3", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{a \boxed{5} b}", r"a \boxed{5} b"),
        (r"\boxed{a \boxed{5}", "5"),
        (r"\boxed {5}", "5"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        ("\\boxed5 no braces", None),
        (r"} \boxed{5}", "5"),
        ("", None),
    ],
)
def test_the_last_complete_box_counts(completion: str, found: str | None):
    assert last_boxed(completion) == found


@pytest.mark.parametrize(
    ("completion", "found"),
    [
        ("<answer>1</answer><answer>2</answer>", "2"),
        ("<answer>1</answer><answer>2", "1"),
        ("<answer><answer>1</answer>", "1"),
        ("</answer>", None),
        ("<answer>", None),
    ],
)
def test_the_last_complete_answer_tag_counts(completion: str, found: str | None):
    assert last_answer_tag(completion) == found


def test_a_right_answer_stays_right_when_the_talk_goes_on():
    """BUG-059."""
    assert judge(boxed("42") + " Thank you. " * 200, "42") == 1.0


def test_a_mere_mention_earns_nothing():
    verdict = EXACT("the answer is 42", reference_answer="42", finish_reason="stop")
    assert (verdict.accuracy, verdict.correct, verdict.status) == (0.0, False, "no_answer")


@pytest.mark.parametrize(
    ("completion", "accuracy"),
    [
        (r"<think>\boxed{7}</think> I am not sure.", 0.0),
        (r"<think>so \boxed{7} might be right, let me check", 0.0),
        (r"<think>\boxed{3}</think> \boxed{7}", 1.0),
        (r"thought of the prompt: \boxed{3}</think> \boxed{7}", 1.0),
        (r"\boxed{7} <think>or \boxed{3}</think>", 0.0),
        (r"<think>a</think> \boxed{7} <think>or \boxed{3}", 1.0),
        ("<think>7</think><answer>7</answer>", 1.0),
    ],
)
def test_a_box_in_the_reasoning_is_no_answer(completion: str, accuracy: float):
    assert judge(completion, "7") == accuracy


def test_the_order_of_extractors_decides():
    both = r"<answer>1</answer> \boxed{2}"
    assert judge(both, "2") == 1.0
    assert judge(both, "1", AnswerMatch(extract=("answer_tag", "boxed"))) == 1.0
    assert judge(both, "2", AnswerMatch(extract=("answer_tag",))) == 0.0
    assert judge(r"<answer>\boxed{5}</answer>", "5", AnswerMatch(extract=("answer_tag",))) == 1.0


def test_truncated_completions_follow_the_setting():
    """Truncated is what the generator calls `length`, whatever the text looks like."""
    cut = EXACT(boxed("7"), reference_answer="7", finish_reason="length")
    assert (cut.accuracy, cut.correct, cut.status, cut.extracted) == (0.0, False, "truncated", "7")
    assert judge(boxed("7"), "7", AnswerMatch(truncated="score"), finish_reason="length") == 1.0


def test_text_after_the_end_is_not_asked_for():
    """BUG-038 is the caller's to keep: the text ends at the end token. With the rest of it the verdict would differ."""
    assert judge(boxed("1"), "2") == 0.0
    assert judge(boxed("1") + boxed("2"), "2") == 1.0


def test_an_unreadable_reference_pays_nobody():
    """BUG-056."""
    numeric = AnswerMatch(compare="numeric")
    for gold, rule in (("the answer is unknowable", numeric), ("", EXACT), ("  ", EXACT)):
        verdict = rule(boxed("1"), reference_answer=gold, finish_reason="stop")
        assert (verdict.accuracy, verdict.correct, verdict.status) == (None, None, "unscorable")


def test_numeric_comparison_takes_numbers_within_the_tolerance():
    close = AnswerMatch(compare="numeric", tolerance=0.01)
    assert [judge(boxed(answer), "1/3", close) for answer in ("0.333", "0.3", "one third")] == [1.0, 0.0, 0.0]
    assert judge(boxed("0.75"), "3/4", AnswerMatch(compare="numeric")) == 1.0


def test_the_version_holds_every_setting():
    assert AnswerMatch().version != AnswerMatch(truncated="score").version
    assert AnswerMatch().version == 'answer_match/2 {"compare": "exact", "extract": ["boxed", "answer_tag"],' + (
        ' "kind": "answer_match", "tolerance": 0.0, "truncated": "zero"}'
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"extract": ()}, "extract is empty"),
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"tolerance": 0.1}, "compare is exact"),
    ],
)
def test_settings_without_meaning_are_refused(fields: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        AnswerMatch(**fields)


MARKUP = st.lists(
    st.sampled_from(["\\boxed{", "}", "{", "\\frac", "<answer>", "</answer>", "$", "\\", "/", "-", ".", ",", "1",
                     "0", " ", "\\text{", "\\(", "\\)", "{,}", "9" * 300, "\u00bd", "\u0661", "\ud800", "\x00"]),
    max_size=40,
).map("".join)  # fmt: skip


@given(MARKUP | st.text(), MARKUP | st.text(string.printable))
def test_no_text_raises(completion: str, gold: str):
    for rule in (EXACT, AnswerMatch(compare="numeric"), AnswerMatch(extract=("answer_tag",), truncated="score")):
        verdict = rule(completion, reference_answer=gold, finish_reason="stop")
        assert verdict.accuracy in (None, 0.0, 1.0)


@given(MARKUP)
def test_every_answer_equals_itself(answer: str):
    """BUG-061: gold answers verify against themselves; reading the canonical text again changes nothing."""
    assert normalize_answer(normalize_answer(answer)) == normalize_answer(answer)


@given(st.fractions())
def test_numbers_are_exact(number: object):
    assert parse_number(str(number)) == number


@pytest.mark.timeout(120)
def test_a_hostile_completion_is_judged_in_linear_time():
    """A hundred thousand characters would take hours if each opening scanned to the end."""
    for part in ("\\boxed{", "\\", "<answer>", "$", "\\frac{", "1,", ".", "{"):
        assert judge(part * 100_000, "1") == 0.0
        assert judge(boxed(part * 20_000), "1") == 0.0
