"""Rewards that are tried before a run starts: each must judge a sample as it should."""

from papo.rewards import CodeTests, CustomReward, OutcomeReward
from papo.rewards.format import SAMPLE
from schemas.config import RunConfig
from schemas.faults import Fault, Field


def judges_of(config: RunConfig) -> list[tuple[Field, OutcomeReward]]:
    """What judges in training and, where that is another, on the held-out rows; each with its place in the config."""
    held_out = config.evaluation.outcome if config.evaluation is not None else None
    judges: list[tuple[Field, OutcomeReward]] = [(("reward", "outcome"), config.reward.outcome)]
    return judges if held_out is None else [*judges, (("evaluation", "outcome"), held_out)]


def reward_faults(config: RunConfig) -> list[Fault]:
    """A reward that cannot judge a sample or run programs, a format reward that its sample does not earn (BUG-064)."""
    reward, found = config.reward, list[Fault]()
    for place, outcome in judges_of(config):
        if isinstance(outcome, CustomReward) and (reason := outcome.self_test()) is not None:
            text = f"is no reward: {reason}. Repair it, or name another function."
            found.append(Fault((*place, "target"), text))
        if isinstance(outcome, CodeTests) and (reason := outcome.self_test()) is not None:
            found.append(Fault(place, f"cannot run programs here: {reason}"))
    if reward.format_weight > 0 and reward.format(SAMPLE) != 1.0:
        text = f"gives its own sample {SAMPLE!r} no reward: use end markers that are no part of it."
        found.append(Fault(("reward", "format"), text))
    return found
