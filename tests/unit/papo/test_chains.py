from collections import Counter
from random import Random
from typing import Any

import pytest

from papo.chains import PARITY_MIXTURE, VALUE_MIXTURE, VOCABULARY, ChainTask, Style
from papo.rewards import AnswerMatch, FormatReward
from papo.scorers import ChainRubric

MATCH = AnswerMatch(extract=("answer_tag",))


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_splits_share_no_problem_and_make_up_all_of_them(steps: int):
    task = ChainTask(steps=steps)
    total = 10 * 9**steps
    with pytest.raises(ValueError, match=f"count is {total} but the heldout split") as refusal:
        task.problems(0, total, "heldout")
    size = int(str(refusal.value).split()[-1].rstrip("."))
    held_out = {problem.prompt for problem in task.problems(0, size, "heldout")}
    trained = {problem.prompt for problem in task.problems(1, total - size, "train")}
    assert total / 32 < size < total / 8
    assert len(held_out) + len(trained) == total
    assert not held_out & trained


@pytest.mark.parametrize("task", ["value", "parity"])
def test_problems_are_right_and_stay_within_one_digit(task: Any):
    for problem in ChainTask(task=task).problems(3, 500):
        total = problem.first
        for change in problem.changes:
            assert 1 <= abs(change) <= 9
            total += change
            assert 0 <= total <= 9
        assert problem.reference_answer == str(total if task == "value" else total % 2)
        assert problem.prompt == f"{problem.first}" + "".join(f"{c:+d}" for c in problem.changes) + "="


def test_the_seed_alone_decides():
    task = ChainTask()
    assert task.problems(1, 20) == task.problems(1, 20) == task.problems(1, 30)[:20]
    assert task.problems(1, 20) != task.problems(2, 20)
    assert task.sft_rows(1, 20) == task.sft_rows(1, 30)[:20]
    assert ChainTask(task="parity").problems(1, 5)[0].prompt == task.problems(1, 5)[0].prompt


def test_all_text_is_in_the_vocabulary():
    assert len(VOCABULARY) == len(set(VOCABULARY)) == 20
    for task in ("value", "parity"):
        for prompt, completion in ChainTask(task=task).sft_rows(0, 300):
            rest = prompt + completion
            for token in VOCABULARY:
                rest = rest.replace(token, "")
            assert not rest


def right(task: ChainTask, style: Style, trials: int = 400) -> tuple[float, float, float]:
    """Shares of right answers, of full rubric, and of working without a wrong line, over traces in one style."""
    correct = full = sound = 0
    for number, problem in enumerate(task.problems(5, trials)):
        trace = task.trace(problem, style, Random(number))
        assert FormatReward()(trace) == 1.0
        correct += bool(MATCH(trace, reference_answer=problem.reference_answer, finish_reason="stop").correct)
        score = ChainRubric(task=task.task)(problem.prompt, trace, reference_answer="", correct=True)
        full += score.aggregate == 1.0
        lines = trace.removeprefix("<think>").split("</think>")[0].split("\n")
        sound += all(eval(left) == int(total) for left, total in (line.split("=") for line in lines if line) if left)
    return correct / trials, full / trials, sound / trials


def test_styles_are_what_they_say():
    value, parity = ChainTask(), ChainTask(task="parity")
    assert right(value, "concise") == (1.0, 1.0, 1.0)
    assert right(value, "verbose") == (1.0, 0.0, 1.0)
    assert right(value, "error") == (0.0, 0.0, 0.0)
    assert right(value, "ramble") == (0.0, 0.0, 0.0)
    guessed, full, _ = right(value, "guess")
    assert 0.05 < guessed < 0.16
    assert full == 0.0
    lucky, _, sound = right(parity, "sloppy")
    assert 0.25 < sound < 0.40  # 0.75^4 = 0.316
    assert 0.55 < lucky < 0.75


def test_an_error_is_one_step_carried_on():
    task = ChainTask()
    for number, problem in enumerate(task.problems(2, 200)):
        trace = task.trace(problem, "error", Random(number))
        lines = [line.split("=") for line in trace.removeprefix("<think>").split("</think>")[0].split("\n")]
        assert sum(eval(left) != int(total) for left, total in lines) == 1
        assert all(lines[k + 1][0].startswith(lines[k][1]) for k in range(3))


@pytest.mark.parametrize(("task", "mixture"), [("value", VALUE_MIXTURE), ("parity", PARITY_MIXTURE)])
def test_the_mixture_is_kept(task: Any, mixture: dict[Style, float]):
    rows = ChainTask(task=task).sft_rows(0, 4000)
    kinds = Counter("guess" if "<think></think>" in c else "filler" if "\n=" in c else "plain" for _, c in rows)
    assert abs(kinds["guess"] / 4000 - mixture["guess"]) < 0.03
    assert abs(kinds["filler"] / 4000 - mixture["verbose"] - mixture.get("ramble", 0)) < 0.03
    only = ChainTask(task=task).sft_rows(0, 50, {"concise": 1.0})
    assert all("<think></think>" not in c and "\n=" not in c for _, c in only)


def test_a_length_out_of_range_is_refused():
    with pytest.raises(ValueError, match="steps is 7"):
        ChainTask(steps=7)
