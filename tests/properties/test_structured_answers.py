"""Laws of structured answers: a reference accepts itself, nothing emptied or changed is accepted, no text raises."""

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papo.rewards import Countdown, KnightsKnaves, MultipleChoice, Verifier, ZebraGrid

ROUNDS = settings(max_examples=60, deadline=None)
GRID = json.dumps({"header": ["House", "Pet"], "rows": [["1", "cat"], ["2", "dog"]]})
JUDGES: list[tuple[Verifier, str]] = [
    (MultipleChoice(), '{"answer": "B", "options": ["Rome", "Paris"]}'),
    (Countdown(), "5 + 24 - 4"),
    (KnightsKnaves(), "Zoey is a fool, and Riley is a sage."),
    (ZebraGrid(score="cells"), GRID),
]
WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=8).filter(
    lambda word: word not in ("is", "an", "the", "and")
)
WRAPPERS = ("\\boxed{{{}}}", "<answer>{}</answer>", "<think>hm</think>\n<answer>\n{}\n</answer>")
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)
"""Lone surrogates and NUL among them."""
PIECES = st.lists(
    st.sampled_from(
        [
            "\\boxed{",
            "}",
            "{",
            "<answer>",
            "</answer>",
            "```",
            "json",
            '"',
            "\\",
            ":",
            "[",
            "]",
            "answer is ",
            "A",
            "B",
            "(",
            ")",
            "or",
            "Zoey is a ",
            "fool",
            "1",
            "+",
            "=",
            "\\frac",
            "/0",
            "rows",
            "header",
            ",",
            "\n",
            " ",
            "\0",
            "\ud800",
        ]
    ),
    max_size=40,
).map("".join)


def accuracy(rule: Verifier, answer: str, gold: str, wrapper: str = WRAPPERS[1]) -> float | None:
    return rule(wrapper.format(answer), reference_answer=gold, finish_reason="stop").accuracy


@ROUNDS
@given(
    st.integers(0, 5), st.integers(0, 5), st.lists(WORD, min_size=6, max_size=6, unique=True), st.sampled_from(WRAPPERS)
)
def test_choices(right: int, chosen: int, options: list[str], wrapper: str):
    letters = "ABCDEF"
    gold = json.dumps({"answer": letters[right], "options": options})
    rule = MultipleChoice()
    assert rule.check_reference(gold) is None
    for answer in (letters[chosen], f"({letters[chosen]})", f"{letters[chosen]}. {options[chosen]}", options[chosen]):
        assert accuracy(rule, answer, gold, wrapper) == float(chosen == right)
    assert accuracy(rule, f"{letters[right]} or {letters[(right + 1) % 6]}", gold, wrapper) == 0.0


@ROUNDS
@given(
    st.lists(st.integers(1, 99), min_size=2, max_size=6), st.randoms(use_true_random=False), st.sampled_from(WRAPPERS)
)
def test_countdowns(numbers: list[int], random: Random, wrapper: str):
    expression = str(numbers[0])
    for number in numbers[1:]:
        expression = f"({expression}) {random.choice('+-*/')} {number}"
    rule = Countdown()
    assert rule.check_reference(expression) is None
    assert accuracy(rule, expression, expression, wrapper) == 1.0
    assert accuracy(rule, f"{expression} + 1", expression, wrapper) == 0.0
    assert accuracy(rule, f"{expression} + 1 - 1", expression, wrapper) == 0.0


@ROUNDS
@given(
    st.dictionaries(WORD, st.sampled_from(["sage", "fool"]), min_size=1, max_size=5),
    st.sampled_from(WRAPPERS),
    st.data(),
)
def test_assignments(roles: dict[str, str], wrapper: str, data: st.DataObject):
    gold = ", and ".join(f"{name} is a {role}" for name, role in roles.items()) + "."
    shuffled = data.draw(st.permutations(list(roles)))
    rule = KnightsKnaves()
    assert accuracy(rule, gold, gold, wrapper) == 1.0
    assert accuracy(rule, "; ".join(f"{name}: {roles[name]}" for name in shuffled), gold, wrapper) == 1.0
    other = dict(roles)
    other[shuffled[0]] = {"sage": "fool", "fool": "sage"}[roles[shuffled[0]]]
    assert accuracy(rule, "\n".join(f"{name} is a {role}" for name, role in other.items()), gold, wrapper) == 0.0
    del other[shuffled[0]]
    assert accuracy(rule, ", ".join(f"{name} is a {role}" for name, role in other.items()), gold, wrapper) == 0.0


@ROUNDS
@given(st.integers(1, 4), st.integers(1, 4), st.data(), st.sampled_from(WRAPPERS))
def test_grids(height: int, width: int, data: st.DataObject, wrapper: str):
    words = data.draw(st.lists(WORD, min_size=width, max_size=width, unique=True))
    cells = [[str(row), *data.draw(st.lists(WORD, min_size=width, max_size=width))] for row in range(height)]
    header = ["Position#", *words]
    gold = json.dumps({"header": header, "rows": cells})
    assert accuracy(ZebraGrid(), gold, gold, wrapper) == 1.0
    changed = [list(row) for row in cells]
    changed[0][1] += "x"
    answer = json.dumps({"header": header, "rows": changed})
    assert accuracy(ZebraGrid(), answer, gold, wrapper) == 0.0
    assert accuracy(ZebraGrid(score="cells"), answer, gold, wrapper) == (height * width - 1) / (height * width)


@pytest.mark.parametrize(("rule", "gold"), JUDGES)
@ROUNDS
@given(st.one_of(ANY_TEXT, PIECES), st.booleans())
def test_no_text_raises_and_none_of_it_is_right_by_chance(rule: Verifier, gold: str, text: str, tagged: bool):
    completion = f"<answer>{text}</answer>" if tagged else text
    verdict = rule(completion, reference_answer=gold, finish_reason="stop")
    assert verdict.accuracy is not None
    assert rule("\\boxed{B}", reference_answer=text, finish_reason="stop").accuracy in (None, 0.0, 1.0)
    assert rule("", reference_answer=gold, finish_reason="stop").accuracy == 0.0


@pytest.mark.parametrize(("rule", "gold"), JUDGES)
def test_huge_and_deep_texts_are_judged(rule: Verifier, gold: str):
    """Quadratic rules would take hours on these, so that this test would not end."""
    many = 50_000
    for text in (
        "[" * many,
        '{"a":' * many,
        " " * many,
        "\\boxed{" * many,
        "```" * many,
        '"' * many,
        "(" * many,
        "answer is " * many,
        "答案" + " " * many,
        "\n" * many,
        "Zoey is a " * many,
        "9" * many,
        "a is b\n" * many,
        "\\text{" * many,
        "{}" * many,
        "- " * many,
    ):
        for wrapper in ("{}", *WRAPPERS):
            assert accuracy(rule, text, gold, wrapper) == 0.0
