"""Rewards are tried before a run starts."""

import pytest

from papo.rewards import CodeTests
from papo.sandbox import isolation
from schemas.config import RewardConfig, RunConfig
from schemas.rewardchecks import reward_faults


def test_a_host_that_cannot_run_programs_is_refused_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    config = RunConfig.model_construct(reward=RewardConfig(outcome=CodeTests()))
    assert reward_faults(config) == []
    monkeypatch.setattr(isolation, "fault_of", lambda _: "tried in a test")
    (fault,) = reward_faults(config)
    assert "tried in a test" in str(fault)
