import pytest

from papo.rewards import MultipleChoice

GOLD = '{"answer": "B", "options": {"A": "Rome", "B": "Paris", "C": "the river Po", "D": "A dog"}}'
RULE = MultipleChoice()


def judge(completion: str, gold: str = GOLD, rule: MultipleChoice = RULE, finish_reason: str = "stop") -> float | None:
    return rule(completion, reference_answer=gold, finish_reason=finish_reason).accuracy


@pytest.mark.parametrize(
    "completion",
    [
        "\\boxed{B}", "\\boxed{(B)}", "\\boxed{\\text{B}}", "\\boxed{b}", "\\boxed{B.}", "\\boxed{Paris}",
        "\\boxed{B. Paris}", "\\boxed{\\textbf{(B) }Paris}", "<answer>B</answer>", "<answer> (B) paris </answer>",
        "<answer>The answer is (B)</answer>", "<answer>\\boxed{B}</answer>", "The answer is (B).", "Answer: B",
        "So the correct option is B because it is in France.", "**Answer:** **B**", "答案是B。", "The answer is Paris.",
        "The answer is C. No: the answer is B.", "\\boxed{C} Wait, I misread. The answer is (B).",
        "\\boxed{A} then \\boxed{B}", "<think>\\boxed{A}</think>\\boxed{B}", "\\boxed{option B}",
        "The answer is B. A is wrong", "The answer is B, as C is a river.", "The answer is B (not C).",
        "Answer: B. Paris", "The answer is B; A is no capital of France", "Answer: B - Paris",
        "Answer: (B) Paris, C is not",
        "\\boxed{B} is the final answer, as the answer is known to be in France.",
    ],
)  # fmt: skip
def test_what_names_the_option_is_right(completion: str):
    assert judge(completion) == 1.0


@pytest.mark.parametrize(
    "completion",
    [
        "\\boxed{A}", "\\boxed{A or B}", "\\boxed{A, B}", "\\boxed{B or C}", "\\boxed{(A) (B)}", "\\boxed{B. Rome}",
        "\\boxed{}", "", "B", "Paris", "The answer is not B.", "The answer is B or C.", "The answer is A, B or C",
        "<answer>A B C D</answer>", "\\boxed{not B}", "The answer is A dog", "<think>\\boxed{B}</think>",
        "Answer: B (or C)", "Answer: B; C", "Answer: B | C", "Answer: B + C", "Answer: B vs C",
        "Answer: B... or maybe C",
        "The answer is B. Or C", "The answer is B, maybe C", "The answer is B unless C", "Answer: B C D",
        "Answer: B，C",
        "答案是B、C", "答案：B C", "The answer is B \\text{ or } C", "The answer is B and also C",
        "Answer: **B** — **C**",
        "<think>\\boxed{B}", "\\boxed{B} Wait, that is wrong. The answer is (C).", "Answer: Blue", "\\boxed{ABCD}",
    ],
)  # fmt: skip
def test_what_names_another_or_several_is_wrong(completion: str):
    assert judge(completion) == 0.0


def test_an_article_is_no_letter():
    """A statement that begins with the word “A” names the option with that text, or none."""
    gold = GOLD.replace('"answer": "B"', '"answer": "D"')
    assert judge("The answer is A dog", gold) == 1.0
    assert judge("The answer is A cat", gold.replace('"D"', '"A"', 1)) == 0.0
    assert judge("The answer is (A) because of Rome", gold.replace('"D"', '"A"', 1)) == 1.0


@pytest.mark.parametrize(
    "gold", ["B", "(B)", "b", "B.", "B. Paris", "(B) Paris", '{"answer":"b","options":["x","Paris"]}']
)
def test_spellings_of_the_reference(gold: str):
    assert RULE.check_reference(gold) is None
    assert judge("\\boxed{B}", gold) == 1.0
    assert judge("\\boxed{C}", gold) == 0.0
    assert judge("\\boxed{(A) is wrong, so (B)}", gold) == 0.0


@pytest.mark.parametrize("gold", ["", "Paris", '{"answer": "E", "options": ["x", "y"]}', '{"answer": 2}', "{", "7"])
def test_a_reference_that_names_no_option_is_never_a_free_reward(gold: str):
    assert RULE.check_reference(gold) is not None
    verdict = RULE("\\boxed{B}", reference_answer=gold, finish_reason="stop")
    assert (verdict.accuracy, verdict.status) == (None, "unscorable")


def test_two_options_of_one_text_are_found_by_the_check():
    assert RULE.check_reference('{"answer": "A", "options": ["7", "7.0"]}') is not None


def test_order_of_the_places_and_ends():
    both = "<answer>A</answer> \\boxed{B}"
    assert judge(both) == 1.0
    assert judge(both, rule=MultipleChoice(extract=("answer_tag", "boxed"))) == 0.0
    assert judge("\\boxed{B}", finish_reason="length") == 0.0
    assert judge("\\boxed{B}", rule=MultipleChoice(truncated="score"), finish_reason="length") == 1.0
    with pytest.raises(ValueError, match="extract is empty"):
        MultipleChoice(extract=())


def test_without_a_letter_there_is_no_answer():
    assert RULE("It is Paris", reference_answer=GOLD, finish_reason="stop").status == "no_answer"
