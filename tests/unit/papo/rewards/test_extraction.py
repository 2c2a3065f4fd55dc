"""Where an answer stands: the declared order of places, reasoning left out, later statements before earlier ones."""

import pytest

from papo.rewards.extraction import extract

BOXED = [
    (r"\boxed{7}", "7"), (r"\boxed{\boxed{7}}", "7"), (r"\fbox{7}", "7"), (r"\boxed 7", "7"), (r"\boxed7", "7"),
    (r"\boxed {\frac{1}{2}}", r"\frac{1}{2}"), (r"\boxed\frac{1}{2}", r"\frac{1}{2}"),
    (r"\boxed{1} then \boxed{2}", "2"),
    (r"\boxed{1} then \boxed{2", "1"), (r"\boxed{\{1,2\}}", r"\{1,2\}"), (r"\boxed{\text{a } b}", r"\text{a } b"),
    (r"\boxed{4", None), (r"\boxed{}", None), (r"<answer>\boxed{3}</answer>", "3"),
    (r"\boxed{7}. Wait, actually the answer is 9.", "9"), (r"\boxed{7}. Wait, let me check. Yes.", "7"),
    (r"\boxed{7}. No, that is wrong. The answer should be $9$.", "9"), (r"\boxed{7}. Actually it is easy.", "7"),
    (r"$\boxed{7}$ or $\boxed{8}$", "7 or 8"), (r"\boxed{x=1}, $\boxed{y=2}$", "x=1 , y=2"),
    (r"\boxed{6} \boxed{7} and \boxed{8}", "6 , 7 and 8"), (r"\boxed{1}或\boxed{2}", "1 or 2"),
    (r"\boxed{7} for \boxed{8}", "7 or 8"),
    (r"\boxed{\boxed{1}, \boxed{2}}", r"\boxed{1}, \boxed{2}"),
    (r"\boxed{7}, wrong! \boxed{9}", "9"), (r"\boxed{42}" + " closing talk" * 200, "42"),
]  # fmt: skip
THINKING = [
    ("<think>so \\boxed{8} might be right", None), ("<think>\\boxed{3}</think> I am not sure.", None),
    ("<think>\\boxed{3}</think>\\boxed{4}", "4"), ("given <think>12</think><answer>10</answer>", "10"),
    ("<think>a</think> \\boxed{4} <think> or \\boxed{5}", "4"), ("<think>42", None), ("the answer is 3</think>", None),
]  # fmt: skip
STATED = [
    ("So the answer is 42.", "42"), ("The final answer is $\\frac{1}{2}$.", "\\frac{1}{2}"), ("**Answer:** 42", "42"),
    ("Answer: \\(x=3\\)", "x=3"), ("## Answer\n\n42", "42"), ("The correct answer is C", "C"), ("答案：12", "12"),
    ("最终答案是 $\\frac12$。", "\\frac12"), ("因此，结果为12。", "12"),
    ("Final Answer: the final answer is $4$. I hope so.", "4"),
    ("The answer is 5. The answer is 6.", "6"), ("the answer is $3$ or $4$", "$3$ or $4$"),
    ("The answer is 1,234.56 dollars.", "1,234.56 dollars"), ("The solution to the equation is x=4", "x=4"),
]  # fmt: skip
HASHES = [
    ("work\n#### 42", "42"), ("#### 1,234\n" + "talk " * 400, "1,234"), ("#### 3\n#### 4", "4"), ("####", None),
    ("#### For $T = 3$:\n\nThe product is 6.", "6"), ("#### What we know about it\nSo x is 4", "4"),
]  # fmt: skip
CLOSING = [
    ("The chance is 50 percent.", "50 percent"), ("There are 42 cats and 7 dogs, so the total is 49.", "49"),
    ("pi/3", "pi/3"), ("(4, \\frac{2\\pi}{5})", "(4, \\frac{2\\pi}{5})"), ("so $m\\in[1,2)$", "m\\in[1,2)"),
    ("The line is 2x + 3y + 12=0", "2x + 3y + 12=0"), ("Hence $x = 3$ or $x = -3$.", "$x = 3$ or $x = -3$"),
    ("We get 3 + 4 = 7", "3 + 4 = 7"), ("Thus there are $5! = 120$.", "5! = 120"), ("Is it 42?", None),
    ("Freda used **12 tomatoes** to make her sauce.", "12 tomatoes"),
    ("The maximum of $x$ is **13**, at $x = 2$.", "13"),
    ("The houses are (are) 81.", "81"), ("He will make a total of \\(\\$440\\) for the day.", "\\$440"),
    ("The value is therefore:\n\\[ f(1) = 2 + 3 = 5. \\]", "f(1) = 2 + 3 = 5."), ("It is **153**.", "153"),
    ("I thought of 42 but I am not sure of it", None), ("", None), ("...", None),
]  # fmt: skip


@pytest.mark.parametrize(("completion", "answer"), BOXED + THINKING + STATED + HASHES + CLOSING)
def test_the_committed_answer(completion: str, answer: str | None) -> None:
    assert extract(completion) == answer


@pytest.mark.parametrize("completion", [text for text, _ in STATED + HASHES + CLOSING])
def test_no_box_is_no_answer_where_only_boxes_are_asked_for(completion: str) -> None:
    assert extract(completion, ("boxed",)) is None


def test_the_order_of_places_decides() -> None:
    both = r"<answer>1</answer> \boxed{2} #### 3"
    assert extract(both, ("boxed", "answer_tag")) == "2"
    assert extract(both, ("answer_tag", "boxed")) == "1"
    assert extract(both, ("hashes",)) == "3"


def test_bug_059_an_answer_is_found_however_long_the_talk_after_it() -> None:
    assert extract("#### 42\n" + "x" * 2000) == "42"


@pytest.mark.timeout(60)
def test_extraction_takes_linear_time() -> None:
    for part in (
        "\\boxed{",
        "\\boxed",
        "<answer>",
        "####",
        "the answer is ",
        "$",
        "{",
        "\\",
        "= ",
        "is ",
        "wait ",
        "$x$ or ",
    ):
        extract(part * 50_000)
        extract(part * 50_000 + "\\boxed{1}")
