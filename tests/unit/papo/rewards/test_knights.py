import pytest

from papo.rewards import KnightsKnaves

GOLD = "Zoey is a fool, and Riley is a sage."
RULE = KnightsKnaves()


def judge(completion: str, gold: str = GOLD) -> float | None:
    return RULE(completion, reference_answer=gold, finish_reason="stop").accuracy


@pytest.mark.parametrize(
    "answer",
    [
        GOLD,
        "Riley is a sage and Zoey is a fool",
        "(1) Zoey is a fool\n(2) Riley is a sage",
        "zoey: fool; RILEY: SAGE",
        "- Zoey is the fool\n- Riley is the sage",
        "1. **Zoey** is a fool\n2. **Riley** is a sage",
        "Zoey = fool, Riley = sage",
        '{"Riley": "sage", "Zoey": "a fool"}',
        "\\text{Zoey is a fool, and Riley is a sage}",
        '```json\n{"Zoey": "fool", "Riley": "sage"}\n```',
        "Zoey is a fool, Zoey is a fool, Riley is a sage",
    ],
)
def test_spellings_of_the_whole_assignment(answer: str):
    assert judge(f"<answer>{answer}</answer>") == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "Zoey is a fool",
        "Zoey is a fool, and Riley is a fool.",
        "Zoey is a sage, and Riley is a fool.",
        "",
        "Zoey is a fool or a sage, and Riley is a sage.",
        "Zoey is a fool, Zoey is a sage, Riley is a sage",
        "Zoey is not a fool, Riley is a sage",
        "Zoey is a fool, Riley is a sage, Max is a sage",
        "fool, sage",
        "Either Zoey is a fool, and Riley is a sage, or not",
        '{"Zoey": "fool", "Zoey": "fool", "Riley": "sage"}',
        '{"Zoey": "fool", "zoey": "sage", "Riley": "sage"}',
        "{}",
        "[]",
        '{"Zoey": ["fool", "sage"], "Riley": "sage"}',
        "Zoey is a fool, and Riley is a sage. Or both are sages.",
    ],
)
def test_part_of_it_more_than_it_and_two_of_it_are_wrong(answer: str):
    assert judge(f"<answer>{answer}</answer>") == 0.0


def test_the_places_in_their_order():
    assert judge(f"\\boxed{{{GOLD}}}") == 1.0
    assert judge(f"Suppose Zoey is a sage. That cannot be.\n\n{GOLD}\n") == 1.0
    assert judge("Thus:\nZoey is a fool\nRiley is a sage") == 1.0
    assert judge(f"Suppose {GOLD} Then all is well") == 0.0
    assert judge(f"<think>{GOLD}") == 0.0
    assert RULE("Nothing", reference_answer=GOLD, finish_reason="stop").status == "no_answer"
    assert RULE(GOLD, reference_answer=GOLD, finish_reason="length").status == "truncated"


@pytest.mark.parametrize(
    "gold", ["", "both are sages", "{", '{"Zoey": 1.5e999, "Riley": null}', "Zoey is a fool, Zoey is a sage"]
)
def test_a_reference_that_is_no_assignment_is_never_a_free_reward(gold: str):
    assert RULE.check_reference(gold) is not None
    assert judge(f"<answer>{gold}</answer>", gold) is None
