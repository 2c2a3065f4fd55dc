"""What an algorithm needs is demanded, and what it has no use for is refused, before anything is loaded."""

from typing import Any

import pytest

from schemas.crosschecks import cross_faults, warnings_of
from tests.simulation.world import CONFIG, config_with

PAPO = {"kind": "papo"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"critic": {}}, "critic is given, but algorithm.advantage.kind is papo"),
    ({"implicit_prm": {}}, "implicit_prm is given"),
    ({"sampling": {"num_generations": 1}}, "num_generations is 1"),
    (
        {"algorithm": {"advantage": {"kind": "gae"}}, "sampling": {"filter_groups": {}}},
        "sampling.filter_groups.metric is advantage, but with gae",
    ),
    (
        {"algorithm": {"advantage": {"kind": "prime"}, "use_kl_loss": True, "ref_update_interval": 3}},
        "the implicit PRM is measured against the first policy",
    ),
    (
        {"algorithm": {"advantage": {"kind": "multi_reward", "reward_weights": [1.0]}}},
        "has 1 weights, but the reward has 2 parts: accuracy, format",
    ),
    ({"scorer": None, "algorithm": {"advantage": {"kind": "prpo"}}}, "which needs process scores"),
]
ALLOWED: list[dict[str, Any]] = [
    {"algorithm": {"advantage": {"kind": "gae"}}, "critic": {"warmup_iterations": 2}},
    {"algorithm": {"advantage": {"kind": "gae"}}, "sampling": {"num_generations": 1}},
    {"algorithm": {"advantage": {"kind": "reinforce_plus_plus"}}, "sampling": {"num_generations": 1}},
    {"algorithm": {"advantage": {"kind": "prime"}}, "implicit_prm": {}, "sampling": {"filter_accuracy": {}}},
    {"algorithm": {"advantage": {"kind": "gae"}}, "sampling": {"filter_groups": {"metric": "acc"}}},
    {"algorithm": {"advantage": {"kind": "multi_reward", "reward_weights": [1.0, 0.1]}}},
    {"scorer": None, "algorithm": {"advantage": {"kind": "prime"}}},
]


def faults(sections: dict[str, Any]) -> list[str]:
    sampling = CONFIG["sampling"] | sections.get("sampling", {})
    config = config_with(**({"algorithm": {"advantage": PAPO}} | sections | {"sampling": sampling}))
    return [f"{'.'.join(map(str, fault.field))} {fault.text}" for fault in cross_faults(config)]


@pytest.mark.parametrize(("sections", "text"), REFUSED)
def test_what_does_not_fit_the_algorithm_is_refused_by_name(sections: dict[str, Any], text: str) -> None:
    found = faults(sections)
    assert any(text in fault for fault in found), found


def test_a_value_clip_far_below_the_reward_is_warned_about() -> None:
    """Measured: with a reward of 10 and a clip of 0.2 the explained variance stayed below 0.01 for 20 iterations."""
    ppo = {"advantage": {"kind": "gae"}}
    tenfold = CONFIG["reward"] | {"accuracy_scale": 10.0}
    (warning,) = warnings_of(config_with(algorithm=ppo, reward=tenfold))
    assert warning.startswith("algorithm.cliprange_value is 0.2, but rewards are 10.0 apart")
    assert warnings_of(config_with(algorithm=ppo)) == []
    assert warnings_of(config_with(algorithm=ppo | {"cliprange_value": None}, reward=tenfold)) == []


@pytest.mark.parametrize("sections", ALLOWED)
def test_what_fits_is_let_through(sections: dict[str, Any]) -> None:
    assert faults(sections) == []
