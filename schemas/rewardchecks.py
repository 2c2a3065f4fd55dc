"""Rewards that are tried before a run starts: each must judge a sample as it should."""

from papo.rewards import OutcomeReward
from papo.rewards.format import SAMPLE
from papo.rewards.second_opinion import ASKED_OF
from schemas.config import RunConfig
from schemas.data import ReasoningGymSource, plain_sources
from schemas.faults import Fault, Field

READS_PROBLEMS = ("reasoning_gym", "reward_model", "custom")
"""Kinds that can judge answers to problems of reasoning-gym."""


def judges_of(config: RunConfig) -> list[tuple[Field, OutcomeReward]]:
    """What judges in training and, where that is another, on the held-out rows; each with its place in the config."""
    held_out = config.evaluation.outcome if config.evaluation is not None else None
    judges: list[tuple[Field, OutcomeReward]] = [(("reward", "outcome"), config.reward.outcome)]
    return judges if held_out is None else [*judges, (("evaluation", "outcome"), held_out)]


def reward_faults(config: RunConfig) -> list[Fault]:
    """A reward that cannot judge here or not these rows, a format reward that its sample does not earn (BUG-064)."""
    reward, found = config.reward, list[Fault]()
    for place, outcome in judges_of(config):
        # Rewards that depend on what is installed here, or on anybody's code, have a self_test.
        test = getattr(outcome, "self_test", None)
        if test is not None and (reason := test()) is not None:
            found.append(Fault(place, f"({outcome.kind}) cannot judge here: {reason}."))
    found += _problem_faults(config)
    if reward.format_weight > 0 and reward.format(SAMPLE) != 1.0:
        text = f"gives its own sample {SAMPLE!r} no reward: use end markers that are no part of it."
        found.append(Fault(("reward", "format"), text))
    return [*found, *_opinion_faults(config)]


def _opinion_faults(config: RunConfig) -> list[Fault]:
    judges = judges_of(config)
    if config.reward.second_opinion is None or any(outcome.kind in ASKED_OF for _, outcome in judges):
        return []
    text = (
        f"is given, but {judges[0][1].kind} leaves nothing to a second opinion: what it rejects is wrong. Leave it out,"
        f" or use one of {', '.join(ASKED_OF)}."
    )
    return [Fault(("reward", "second_opinion"), text, tuple(place for place, _ in judges))]


def _problem_faults(config: RunConfig) -> list[Fault]:
    """Problems of reasoning-gym whose references the reward of their split cannot read."""
    judges = judges_of(config)
    made = {place[1] for place, source in plain_sources(config.data) if isinstance(source, ReasoningGymSource)}
    by_split = {"train": judges[0], "evaluation": judges[-1]}
    wrong = dict(by_split[split] for split in sorted(made, key=str) if split in by_split)
    return [
        Fault((*place, "kind"), f"is {judge.kind}, but a source is reasoning_gym: use the reward of that kind.")
        for place, judge in wrong.items()
        if judge.kind not in READS_PROBLEMS
    ]
