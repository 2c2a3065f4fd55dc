"""C-24: one rule for several boxes, whatever stands between them."""

import pytest

from papo.rewards.boxes import are_one_answer
from papo.rewards.extraction import extract

JOINED = [
    "", " ", "\n\n", " or ", " OR ", ") or (", "$ or $x=", "\\), \\(", "** or **", " / ", "|", " & ", "_or_", " = ",
    "\\]\nor\n\\[", "\\quad\\text{or}\\quad ", " \\lor ", " o\u200br ", " or\xa0",
    " oder ", " ou ", " 或 ", " \u043e\u0433 ",
    "<br>",
    " or perhaps ", " alternatively ", "; alternatively, ", " as well as ", "\n- ", "\n* ", "\n2. ", "\n(b) ",
    ". Or ", ".\n\nAlternatively, we have ", ". Another answer is ", "\n\nCase 2: ", ". The other solution is ",
    " if the ends count, and in case they do not count at all it is just ", ". Or so it is ",
]  # fmt: skip
APART = [
    " w\u200bait: ",
    ". Wait, I made an error: it should be ", ". No, that is wrong. ", ", no, ", " is what I said, sorry, it is ",
    ".\n\nThe area is therefore ", ".\nNow b is a + 1 and hence ", ". So the total is ", ", so the total is ", " then ",
    " eggs a day, which gives a weekly number of ", ", but the correct answer is ", ". The final answer is ",
    ".\n\n## Step 2\nDivide by the number of cars. ", "。因此总数为\n所以答案是 ",
]  # fmt: skip


@pytest.mark.parametrize("between", JOINED)
def test_c_24_boxes_of_one_statement_are_one_answer(between: str) -> None:
    assert are_one_answer(between)
    assert extract(f"The answer is \\boxed{{7}}{between}\\boxed{{8}}.") in ("7 or 8", "7 and 8", "7 , 8")


@pytest.mark.parametrize("between", APART)
def test_c_24_a_later_statement_replaces_the_boxes_before_it(between: str) -> None:
    assert not are_one_answer(between)
    assert extract(f"We find \\boxed{{7}}{between}\\boxed{{8}}.") == "8"


@pytest.mark.parametrize(
    "completion",
    [
        "The answer is not \\boxed{7}.", "It isn't $\\boxed{7}$.", "It cannot be \\boxed{7}.", "$x \\ne \\boxed{7}$",
        "$$\\boxed{7}$$ is wrong.", "\\boxed{7} (incorrect)", "\\boxed{7} is not the right answer", "Is it \\boxed{7}?",
        "\\boxed{}", "neither \\boxed{7} nor \\boxed{8}",
    ],
)  # fmt: skip
def test_c_24_a_box_that_is_denied_is_no_answer(completion: str) -> None:
    assert extract(completion) is None


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("not \\boxed{7} but \\boxed{8}", "8"), ("\\boxed{8} and not \\boxed{7}", "8"), ("\\boxed{8}, not 7", "8"),
        ("\\boxed{8} is right", "8"), ("\\boxed{} \\boxed{8}", "8"), ("\\boxed{8}, i.e. \\boxed{8}", "8"),
        ("\\boxed{7} was a guess, but the answer is 8.", "8"), ("Use \\boxed{}. The answer is 8.", "8"),
        ("7 or \\boxed{8}", "7 or 8"), ("$\\boxed{8}$ (or 9).", "8 or 9"), ("\\boxed{B} or C", "B or C"),
        ("\\boxed{8} or so", "8"), ("\\boxed{8}, or 9 less than 17", "8"), ("or \\boxed{8}", "8"),
        ("1/2 or $\\boxed{0.5}$", "1/2 or 0.5"),
        ("Why not: \\boxed{8}", "8"), ("\\boxed{1}, \\boxed{2} / \\boxed{3}", "1 , 2 or 3"),
        ("\\boxed{1} / \\boxed{2} and \\boxed{3}", "1 , 2 and 3"), ("Is it 3? No, it is \\boxed{8}.", "8"),
    ],
)  # fmt: skip
def test_what_is_left(completion: str, answer: str) -> None:
    assert extract(completion) == answer
