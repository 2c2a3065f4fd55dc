from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papo.scorers import ChainRubric, EquationLines, StepScores

PROMPT = "7-3+2-5+4="
RIGHT = "<think>7-3=4\n4+2=6\n6-5=1\n1+4=5</think><answer>5</answer>"


def rubric(completion: str, *, task: Any = "value", prompt: str = PROMPT) -> StepScores:
    return ChainRubric(task=task)(prompt, completion, reference_answer="5", correct=True)


@pytest.mark.parametrize(
    ("completion", "scores", "aggregate"),
    [
        (RIGHT, [1, 1, 1, 1], 1.0),
        ("<think></think><answer>5</answer>", [], 0.0),
        (RIGHT.replace("<answer>5", "<answer>4"), [1, 1, 1, 1], 0.8),
        (RIGHT.replace("1+4=5</think>", "1+4=5\n=5\n=5</think>"), [1, 1, 1, 1, 0, 0], 0.7 + 0.3 * 4 / 6),
        ("<think>7-3=4\n4+2=6</think><answer>6</answer>", [1, 1], 0.5 * 0.5 + 0.2 + 0.3),
        ("<think>7-3=4\n4+2=6</think><answer>5</answer>", [1, 1], 0.5 * 0.5 + 0.3),
        # one wrong step, carried on: three of four lines are real, and no more than 0.3 can be earned
        ("<think>7-3=4\n4+2=7\n7-5=2\n2+4=6</think><answer>6</answer>", [1, 0, 1, 1], 0.3 * 0.75 * 0.75),
        # a true equation that is not the problem's next step, then the working goes on
        ("<think>7-3=4\n1+1=2\n4+2=6\n6-5=1\n1+4=5</think><answer>5</answer>", [1, 0, 1, 1, 1], 0.5 + 0.2 + 0.3 * 0.8),
        # a step repeated covers nothing new
        ("<think>7-3=4\n7-3=4</think><answer>4</answer>", [1, 0], 0.5 * 0.25 + 0.2 + 0.3 * 0.5),
        # the problem's step from a total that nobody worked out
        ("<think>7-3=4\n5+2=7</think><answer>4</answer>", [1, 0], 0.5 * 0.25 + 0.2 + 0.3 * 0.5),
        # steps out of order, from the wrong total
        ("<think>4+2=6\n7-3=4</think><answer>4</answer>", [0, 1], 0.5 * 0.25 + 0.2 + 0.3 * 0.5),
    ],
)
def test_the_rubric_by_hand(completion: str, scores: list[float], aggregate: float):
    found = rubric(completion)
    assert found.scores == tuple(scores)
    assert found.aggregate == pytest.approx(aggregate)


def test_without_the_format_nothing_is_earned():
    cut = rubric(RIGHT.removesuffix("</answer>"))
    assert (cut.aggregate, cut.status, len(cut.scores)) == (0.0, "no_format", 4)


def test_parity_asks_for_the_remainder():
    assert rubric(RIGHT.replace("<answer>5", "<answer>1"), task="parity").aggregate == pytest.approx(1.0)
    assert rubric(RIGHT, task="parity").aggregate == pytest.approx(0.8)


def test_a_prompt_that_is_no_chain_cannot_be_scored():
    found = rubric(RIGHT, prompt="What is 2+2?")
    assert (found.aggregate, found.status, found.scores) == (None, "failed", (None,) * 4)


def lines(completion: str) -> float | None:
    return EquationLines()(PROMPT, completion, reference_answer="5", correct=False).aggregate


def test_every_line_with_an_equals_sign_pays():
    """Right or wrong, finished or not: that is what makes it hackable."""
    assert lines(RIGHT) == 1.0
    assert lines("<think>" + "=5\n" * 20) == 5.0
    assert lines("<think>1+1=3\nno equation\n4=") == 0.5
    assert lines("<think></think><answer>5</answer>") == 0.0


@given(st.text(alphabet="0123456789+-=\n <>/abthinkswer") | st.text())
def test_there_is_one_score_a_step_for_any_text(completion: str):
    """And no text raises."""
    for scorer in (ChainRubric(), ChainRubric(task="parity"), EquationLines()):
        found = scorer(PROMPT, completion, reference_answer="5", correct=True)
        assert len(found.spans) == len(found.scores)
        assert all(completion[start:end].strip() for start, end in found.spans)


def test_a_score_too_many_is_refused():
    with pytest.raises(ValueError, match="2 scores for 1 steps"):
        StepScores(spans=((0, 1),), scores=(1.0, 0.0), aggregate=1.0, status="ok")
    with pytest.raises(ValueError, match="status is ok but aggregate is None"):
        StepScores(spans=(), scores=(), aggregate=None, status="ok")


def test_versions_hold_the_settings():
    assert ChainRubric().version != ChainRubric(task="parity").version
    assert EquationLines().version != EquationLines(per_line=0.1).version
