"""Answers that reasoning-gym's own scorers give full marks, and that are none; each rule accepts its gold."""

from typing import Any

import pytest

from papo.gym.strictness import holds

PUZZLE = {"numbers": [6, 4, 1, 1], "target": 24}
CASES: list[tuple[str, dict[str, Any], str | None, list[str], list[str]]] = [
    ("countdown", PUZZLE, "6*4*1*1", ["(6 * 4) / (1 * 1)"], ["0*(6+4+1+1) + 0x18", "0*(6+4+1+1) + 2_4", "24"]),
    ("puzzle24", {"numbers": [6, 4, 1, 1]}, "6*4*1*1", ["6*4/1/1"], ["6+6+6+6", "8*3", "6*4*1", "6*4*1*1 + 1/2"]),
    ("game_of_life_halting", {}, "True", ["True", "true"], ["False", "x", "\u200b", "True or False"]),
    ("coin_flip", {}, "0.0625", ["0.0625", "1/16", "0.06250"], ["0", "0.0", "0.06", "0,0"]),
    ("gsm_symbolic", {}, "1250", ["1250", "1,250", "1250.0", "$1250"], ["-1250", "1250 or 7", "7, 1250"]),
    ("number_sorting", {}, "['1.5', '2']", ["['1.5', '2.0']", '["1.5", "2"]'], ["['1.4', '2']", "['1.5', '3']"]),
    ("propositional_logic", {"variables": ["P", "Q"]}, None, ["(P ∧ ¬Q)"], ["¬z", "(P ∨ R)"]),
    ("complex_arithmetic", {}, "1.0 - 2.0i", ["1.0 - 2.0i", "1-2j"], ["nan", "NaN + 2i", "1.0 - nani"]),
    ("spell_backward", {}, "nan", ["nan"], []),
    ("needle_haystack", {}, "Fernando", ["Fernando", "Nancy", "banana"], []),
]  # fmt: skip


@pytest.mark.parametrize(("task", "metadata", "gold", "right", "wrong"), CASES, ids=[case[0] for case in CASES])
def test_a_rule_accepts_right_answers_and_no_cheats(
    task: str, metadata: dict[str, Any], gold: str | None, right: list[str], wrong: list[str]
) -> None:
    entry = {"question": "", "answer": gold, "metadata": metadata}
    assert [answer for answer in right if not _held(task, answer, entry)] == []
    assert [answer for answer in wrong if _held(task, answer, entry)] == []


def _held(task: str, answer: str, entry: dict[str, Any]) -> bool:
    """As a worker sees it: an answer that a rule raises on has not been accepted."""
    try:
        return holds(task, answer, entry)
    except ValueError:
        return False
