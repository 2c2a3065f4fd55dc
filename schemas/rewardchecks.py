"""Rewards that are tried before a run starts: each must judge a sample as it should."""

from papo.rewards import OutcomeReward
from papo.rewards.format import SAMPLE
from papo.rewards.second_opinion import ASKED_OF
from schemas.config import RunConfig
from schemas.data import ChainsSource, ReasoningGymSource, plain_sources
from schemas.faults import Fault, Field
from schemas.mappings import PROGRAMS

READS_PROBLEMS = ("reasoning_gym", "reward_model", "custom")
"""Kinds that can judge answers to problems of reasoning-gym."""
READS_PROGRAMS = ("code_tests", "reward_model", "custom")
"""Kinds that can judge programs by the unit tests of a public set."""


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
    """Problems of reasoning-gym, and programs, whose references the reward of their split cannot read."""
    judges, found = judges_of(config), dict[Field, Fault]()
    by_split = {"train": judges[0], "evaluation": judges[-1]}
    for where, source in plain_sources(config.data):
        place, judge = by_split.get(str(where[1]), judges[0])
        field = (*place, "kind")
        mapping = None if isinstance(source, (ReasoningGymSource, ChainsSource)) else source.mapping
        if isinstance(source, ReasoningGymSource) and judge.kind not in READS_PROBLEMS:
            text = f"is {judge.kind}, but a source is reasoning_gym: use the reward of that kind."
            found.setdefault(field, Fault(field, text))
        if mapping in PROGRAMS and judge.kind not in READS_PROGRAMS:
            text = f"is {judge.kind}, but the references of mapping {mapping} are unit tests: use code_tests."
            found.setdefault(field, Fault(field, text))
    return list(found.values())
