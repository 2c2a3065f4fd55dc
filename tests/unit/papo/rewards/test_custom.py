from pathlib import Path
from typing import Any

import pytest

from papo.rewards import Answered, CustomReward, judge_all

LENGTH = """
def length(completion, *, reference_answer, finish_reason, longest=10):
    return len(completion) / longest

def broken(completion, **_):
    raise KeyError("column")

def text(completion, **_):
    return "good"

def nothing(completion, **_):
    return None

def isfinite(completion, **_):
    return float("nan")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my rewards.py"
    path.write_text(LENGTH)
    return path


def judge(reward: CustomReward, completion: str) -> Any:
    return reward(completion, reference_answer="2", finish_reason="stop")


def test_bug_068_a_function_from_a_file_outside_the_package_judges_in_the_pool(file: Path) -> None:
    reward = CustomReward(target=f"{file}:length", settings={"longest": 4})
    assert reward.self_test() is None
    rows = [Answered(completion="a" * count, reference_answer="2") for count in range(6)]
    verdicts = list(judge_all(reward, rows))
    assert [verdict.accuracy for verdict in verdicts] == [0, 0.25, 0.5, 0.75, 1, 1.25]
    assert [verdict.correct for verdict in verdicts] == [False] * 4 + [True] * 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "KeyError: 'column'"),
        ("text", "returned 'good': return a finite number"),
        ("isfinite", "returned nan"),
        ("missing", "has no function 'missing'"),
    ],
)
def test_bug_068_or_the_self_test_says_why_it_cannot(file: Path, name: str, message: str) -> None:
    assert message in str(CustomReward(target=f"{file}:{name}").self_test())


@pytest.mark.parametrize("target", ["no_colon", "nowhere.py:f", "no.such.module:f", "papo.rewards:__all__", ":f"])
def test_targets_that_are_none_are_named(target: str) -> None:
    assert target.rpartition(":")[0] in str(CustomReward(target=target).self_test())


def test_none_is_undecided(file: Path) -> None:
    verdict = judge(CustomReward(target=f"{file}:nothing"), "x")
    assert (verdict.accuracy, verdict.correct, verdict.status) == (None, None, "unscorable")


def test_an_importable_function_may_return_a_whole_verdict() -> None:
    reward = CustomReward(target="tests.unit.papo.rewards.test_custom:whole")
    assert judge(reward, "x").extracted == "x"


def whole(completion: str, *, reference_answer: str, finish_reason: str) -> Any:
    from papo.rewards import Verdict

    return Verdict(accuracy=1.0, correct=True, status="ok", extracted=completion)


def test_the_version_is_the_code(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(LENGTH + "\n")
    versions = {CustomReward(target=f"{path}:length").version.split("sha256=")[1] for path in (file, other)}
    assert len(versions) == 2
    assert (
        CustomReward(target=f"{file}:length").version != CustomReward(target=f"{file}:length", correct_from=2.0).version
    )
