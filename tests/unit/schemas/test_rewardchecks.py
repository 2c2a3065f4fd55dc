"""Rewards are tried before a run starts."""

import pytest

from papo.sandbox import isolation
from schemas.rewardchecks import reward_faults
from tests.simulation.world import config_with


def test_a_host_that_cannot_run_programs_is_refused_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_with(reward={"outcome": {"kind": "code_tests"}})
    assert reward_faults(config) == []
    monkeypatch.setattr(isolation, "fault_of", lambda _: "tried in a test")
    (fault,) = reward_faults(config)
    assert "tried in a test" in str(fault)


def test_problems_of_reasoning_gym_need_its_reward() -> None:
    data = {"train": {"kind": "reasoning_gym", "task": "chain_sum"}}
    (fault,) = reward_faults(config_with(data=data, reward={"outcome": {"kind": "math_answer"}}))
    assert str(fault).startswith("reward.outcome.kind is math_answer, but a source is reasoning_gym")
    assert reward_faults(config_with(data=data, reward={"outcome": {"kind": "reasoning_gym"}})) == []


def test_programs_by_name_need_a_reward_that_runs_them() -> None:
    """Under any other rule every row is unscorable, which was seen when the first iteration was judged."""
    data = {"train": {"kind": "file", "path": "rows.jsonl", "mapping": "humaneval"}}
    (fault,) = reward_faults(config_with(data=data, reward={"outcome": {"kind": "math_answer"}}))
    told = "reward.outcome.kind is math_answer, but the references of mapping humaneval are unit tests: use code_tests."
    assert str(fault) == told
    assert reward_faults(config_with(data=data, reward={"outcome": {"kind": "code_tests"}})) == []
    data["train"]["mapping"] = "gsm8k"
    assert reward_faults(config_with(data=data, reward={"outcome": {"kind": "math_answer"}})) == []
