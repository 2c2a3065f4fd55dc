"""reasoning-gym: its problems are addressed, its scorers judge, and no answer is run."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from papo.gym import GymProblem, make_problems, problems
from papo.rewards import ReasoningGym, Verdict

pytestmark = pytest.mark.skipif(find_spec("reasoning_gym") is None, reason="the extra reasoning-gym is not installed")
REWARD = ReasoningGym(cpu_seconds=10.0)


def judged(answer: str, problem: GymProblem, reward: ReasoningGym = REWARD) -> Verdict:
    text = f"<think>hm</think><answer>{answer}</answer>"
    return reward(text, reference_answer=problem.reference_answer, finish_reason="stop")


def made(task: str, **settings: Any) -> GymProblem:
    (problem,) = make_problems(task, settings, seed=1, count=1, split="train")
    return problem


def gold(problem: GymProblem) -> str:
    return json.loads(problem.reference_answer)["answer"]


@pytest.fixture(scope="module")
def chain() -> GymProblem:
    return made("chain_sum", min_terms=2, max_terms=2)


def test_problems_are_a_function_of_the_seed_and_splits_share_none() -> None:
    """Also for a task whose problems follow the order of sets (ransom_note)."""
    first = make_problems("ransom_note", {}, seed=3, count=6, split="train")
    assert make_problems("ransom_note", {}, seed=3, count=6, split="train") == first
    assert make_problems("ransom_note", {}, seed=4, count=6, split="train") != first
    tasks = {"min_terms": 2, "max_terms": 2, "max_digits": 1}
    train, held_out = (
        {problem.prompt for problem in found}
        for found in (
            make_problems("chain_sum", tasks, seed=1, count=9, split="train"),
            make_problems("chain_sum", tasks, seed=2, count=9, split="heldout"),
        )
    )
    assert len(train) == len(held_out) == 9
    assert not train & held_out


@pytest.mark.parametrize(
    ("task", "settings", "text"),
    [
        ("no_such_task", {}, "has no task 'no_such_task'; it has .*chain_sum"),
        ("chain_sum", {"min_terms": 9, "max_terms": 2}, "max_terms must be"),
        ("chain_sum", {"colour": 1}, "colour"),
    ],
)
def test_what_cannot_be_made_is_named(task: str, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make_problems(task, settings, seed=0, count=1, split="train")


def test_a_right_answer_earns_one_and_a_mention_or_another_nothing(chain: GymProblem) -> None:
    answer = gold(chain)
    assert judged(answer, chain).accuracy == 1.0
    assert REWARD.check_reference(chain.reference_answer) is None
    # The library pays a mention a part: that is what the threshold is for.
    assert judged(f"one of 1, 2, {answer}, 99", chain).accuracy == 0.0
    assert judged(f"{answer}0", chain).accuracy == 0.0
    assert REWARD("no tag", reference_answer=chain.reference_answer, finish_reason="stop").status == "no_answer"
    cut = REWARD(f"<answer>{answer}</answer>", reference_answer=chain.reference_answer, finish_reason="length")
    assert (cut.status, cut.accuracy) == ("truncated", 0.0)
    boxed = REWARD(f"\\boxed{{{answer}}}", reference_answer=chain.reference_answer, finish_reason="stop")
    assert boxed.correct is True


@pytest.mark.parametrize("task", ["n_queens", "binary_matrix", "countdown", "simple_integration"])
def test_scorers_that_evaluate_an_answer_run_nothing_of_it(task: str, tmp_path: Path) -> None:
    problem, trace = made(task), tmp_path / "run"
    assert judged(gold(problem), problem).correct is True
    for text in (f"__import__('pathlib').Path({str(trace)!r}).touch()", f"open({str(trace)!r}, 'w')"):
        verdict = judged(text, problem)
        assert (verdict.correct, verdict.status) == (False, "ok")
    assert not trace.exists()


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("puzzle24", "6+6+6+6"), ("complex_arithmetic", "nan"), ("game_of_life_halting", "whatever"),
        ("coin_flip", "0"), ("simple_integration", "(eval)((chr)(49))"),
    ],
)  # fmt: skip
def test_what_the_librarys_scorer_pays_whatever_the_problem_earns_nothing(task: str, answer: str) -> None:
    problem = made(task)
    assert judged(gold(problem), problem).correct is True
    assert judged(answer, problem).correct is False


def test_a_task_whose_problems_need_programs_to_be_run_is_refused() -> None:
    """Made without them, every one of its answers is {}."""
    with pytest.raises(ValueError, match=r"'codeio' is not used: .* running the programs"):
        make_problems("codeio", {}, seed=0, count=1, split="train")


def test_an_answer_that_uses_up_its_time_is_undefined() -> None:
    verdict = judged("9**9**9**9", made("binary_matrix"), ReasoningGym(cpu_seconds=1.0))
    assert (verdict.correct, verdict.status) == (None, "timeout")


def test_a_reference_that_cannot_be_read_pays_nobody(chain: GymProblem) -> None:
    for reference in ("5", "{}", chain.reference_answer.replace("chain_sum", "no_such_task")):
        verdict = REWARD("<answer>5</answer>", reference_answer=reference, finish_reason="stop")
        assert (verdict.accuracy, verdict.status) == (None, "unscorable")
        assert REWARD.check_reference(reference) is not None
    wrong = json.loads(chain.reference_answer) | {"answer": ""}
    assert "its own answer does not verify" in str(REWARD.check_reference(json.dumps(wrong)))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(codec=None, exclude_categories=()), max_size=100))
def test_no_text_raises_or_is_right(text: str, chain: GymProblem) -> None:
    verdict = judged(text, chain)
    assert verdict.correct is not True or text.strip() == gold(chain)


def test_without_the_library_a_run_is_refused_and_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("papo.rewards.reasoning_gym.installed", lambda: None)
    monkeypatch.setattr(problems, "installed", lambda: None)
    assert "pip install -e '.[reasoning-gym]'" in str(REWARD.self_test())
    with pytest.raises(ValueError, match="is not installed"):
        make_problems("chain_sum", {}, seed=0, count=1, split="train")


def test_problems_that_take_too_long_are_an_error_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "SECONDS", 0.01)
    with pytest.raises(ValueError, match=r"3 problems of chain_sum were not made within 0.01 s: use a smaller count"):
        make_problems("chain_sum", {}, seed=0, count=3, split="train")
