"""Advantages against verl, TRL and the vectors worked out by hand (algorithms G1 to G3)."""

from typing import Any

import numpy as np
import pytest

from papo.advantages import Grpo, Papo
from papo.rollouts import ScoredRollouts
from tests.golden.golden_vectors import assert_golden, load, numbers

PEERS = [(name, case) for name in ("verl_grpo_advantage", "trl_grpo_advantage") for case in load(name)["cases"]]
BY_HAND = load("by_hand")


def scored(outcome: object, *, group: list[int], process: object = None) -> ScoredRollouts:
    rewards = numbers(outcome)
    return ScoredRollouts(
        group=np.array(group),
        outcome=rewards,
        correct=rewards == 1,
        process=np.full(len(rewards), np.nan) if process is None else numbers(process),
        lengths=np.ones(len(rewards), dtype=np.int64),
    )


@pytest.mark.parametrize(("peer", "case"), PEERS, ids=lambda part: part if isinstance(part, str) else part["name"])
def test_grpo_equals_its_peers(peer: str, case: dict[str, Any]):
    """BUG-009 too: `interleaved_index` has the rows of two groups mixed."""
    estimator = Grpo(scale_rewards=case["scale_rewards"], advantage_eps=case["advantage_eps"])
    terms = estimator(scored(case["rewards"], group=case["group"]))
    file = load(peer)
    assert_golden(terms.total, case["advantage"], case["wrong"], rtol=file["rtol"], atol=file["atol"])


@pytest.mark.parametrize("case", BY_HAND["advantages"], ids=lambda case: case["name"])
def test_papo_by_hand(case: dict[str, Any]):
    rollouts = scored(case["outcome"], group=[0] * len(case["outcome"]), process=case["process"])
    terms = Papo(std_ddof=case["ddof"], advantage_eps=0.0)(rollouts)
    assert_golden(terms.total, case["advantage"], case["wrong"], rtol=0, atol=BY_HAND["atol"])
