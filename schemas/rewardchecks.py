"""Rewards that are tried before a run starts: each must judge a sample as it should."""

from papo.rewards import CodeTests, CustomReward
from papo.rewards.format import SAMPLE
from schemas.config import RunConfig
from schemas.faults import Fault


def reward_faults(config: RunConfig) -> list[Fault]:
    """A reward that cannot judge a sample or run programs, a format reward that its sample does not earn (BUG-064)."""
    reward, found = config.reward, list[Fault]()
    if isinstance(reward.outcome, CustomReward) and (reason := reward.outcome.self_test()) is not None:
        text = f"is no reward: {reason}. Repair it, or name another function."
        found.append(Fault(("reward", "outcome", "target"), text))
    if isinstance(reward.outcome, CodeTests) and (reason := reward.outcome.self_test()) is not None:
        found.append(Fault(("reward", "outcome"), f"cannot run programs here: {reason}"))
    if reward.format_weight > 0 and reward.format(SAMPLE) != 1.0:
        text = f"gives its own sample {SAMPLE!r} no reward: use end markers that are no part of it."
        found.append(Fault(("reward", "format"), text))
    return found
