import json

import pytest

from papo.rewards import Countdown

GOLD = '{"numbers": [24, 4, 5, 5], "target": 30}'
RULE, LOOSE = Countdown(), Countdown(use="at_most_once")


def judge(answer: str, gold: str = GOLD, rule: Countdown = RULE) -> float | None:
    return rule(f"\\boxed{{{answer}}}", reference_answer=gold, finish_reason="stop").accuracy


@pytest.mark.parametrize(
    "answer",
    [
        "24+5+5-4", "(24+5)+(5-4)", "24 + 5 + 5 - 4 = 30", "-4+24+5+5", "24.0+5+5-4",
        "24 + 5 + 5 − 4", "\\left(24+5\\right)+5-4", "$24+5+5-4$", "[24+5]+5-4",
    ],
)  # fmt: skip
def test_expressions_that_are_worth_the_target(answer: str):
    assert judge(answer) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "30", "24+4+5-3", "24+5+5", "24+5+5-4 = 31", "24+5+5-4 = 30 = 30", "2 4+5+5-4", "24+5+5-4+0", "",
        "24+5+5-4 or 7", "24+5+(5-4", "24/(5-5)+4", "int('30')", "24**1+5+5-4", "24+5+5-4;", "9^9^9", "24 5", "+", "()",
    ],
)  # fmt: skip
def test_what_misses_the_target_or_the_numbers_is_wrong(answer: str):
    assert judge(answer) == 0.0


def test_numbers_may_be_left_out_only_where_the_rule_says_so():
    assert judge("24+5+5-4") == judge("24+5+5-4", rule=LOOSE) == 1.0
    assert judge("5*5+5", rule=LOOSE) == 0.0
    gold = '{"numbers": [24, 6, 5], "target": 30}'
    assert (judge("24+6", gold), judge("24+6", gold, LOOSE)) == (0.0, 1.0)


def test_values_are_exact():
    gold = '{"numbers": [8, 3, 8, 3], "target": 24}'
    assert judge("8/(3-8/3)", gold) == 1.0
    assert judge("\\frac{8}{3-\\frac{8}{3}}", gold) == 1.0
    assert judge("8 \\div (3 - 8 \\div 3)", gold) == 1.0
    assert judge("3*8", gold) == 0.0


def test_the_places_in_their_order():
    def accuracy(completion: str) -> float | None:
        return RULE(completion, reference_answer=GOLD, finish_reason="stop").accuracy

    assert accuracy("<answer>24+5+5-4</answer>") == 1.0
    assert accuracy("<answer>\n```\n24+5+5-4\n```\n</answer>") == 1.0
    assert accuracy("I try 24+5.\n24+5+5-4\n") == 1.0
    assert accuracy("It is 24+5+5-4") == 0.0
    assert RULE(" \n", reference_answer=GOLD, finish_reason="stop").status == "no_answer"
    assert RULE("24+5+5-4", reference_answer=GOLD, finish_reason="length").status == "truncated"


@pytest.mark.parametrize(
    "gold",
    ["", "{}", '{"numbers": [], "target": 1}', '{"numbers": [1], "target": null}', '{"numbers": [true], "target": 1}',
     '{"numbers": [1], "numbers": [2], "target": 1}', "1/0", "x", '{"numbers": ["1e999999999"], "target": 1}'],
)  # fmt: skip
def test_a_reference_that_is_no_puzzle_is_never_a_free_reward(gold: str):
    assert RULE.check_reference(gold) is not None
    assert judge("1", gold) is None


def test_long_and_deep_expressions_end():
    assert judge("(" * 200 + "5" + ")" * 200) == 0.0
    assert judge("-" * 400 + "5") == 0.0
    assert judge("9*" * 240 + "9") == 0.0
    assert judge("1" * 100_000) == 0.0


def test_gold_expressions_of_puzzles_verify():
    rows = [
        ("5 + 24 - 4", [24, 4, 5], 25),
        ("2*(28 + 24 - 21)", [21, 2, 28, 24], 62),
        ("21/1 - 2 + 18", [2, 18, 21, 1], 37),
    ]
    for gold, numbers, target in rows:
        assert RULE.check_reference(gold) is None
        assert judge(gold, json.dumps({"numbers": numbers, "target": target})) == judge(gold, gold) == 1.0
        assert judge(f"{gold} + 1", gold) == 0.0
