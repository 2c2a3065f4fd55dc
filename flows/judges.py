"""From a config's second opinion to who gives it, tried on samples before a run starts."""

import os
from collections.abc import Callable, Mapping

from papo.errors import ConfigError, JudgeAway
from papo.judges import Judge, Reply
from papo.rewards.second_opinion import read_reply
from schemas.config import RunConfig
from schemas.judges import SecondOpinionConfig
from tasks.fileopinions import ConsiderRows, in_parts

_FIELD = "reward.second_opinion"


def judge_of(config: RunConfig) -> Judge | None:
    """Who gives a run's second opinions; None where it wants none. Nobody is asked yet.

    Raises ConfigError where the variable with the API key is not set.
    """
    opinion = config.reward.second_opinion
    if opinion is None:
        return None
    # httpx is imported only where a run needs it.
    from papo.judges.client import JudgeClient  # noqa: PLC0415

    return JudgeClient(opinion.endpoint.settings, api_key=_key(opinion.endpoint.api_key_env))


def file_opinions(config: RunConfig | None, *, say: Callable[[str], None]) -> ConsiderRows:
    """The second opinion of `papo verify`. Raises ConfigError where the config has none, or its judge is of no use."""
    judge = None if config is None else judge_of(config)
    if config is None or judge is None:
        raise ConfigError(f"--second-opinion needs --config with a run config that has {_FIELD}.")
    meet(judge, config, resumed=False, say=say)
    assert config.reward.second_opinion is not None, "only such a run has a judge"
    return in_parts(config.reward.second_opinion, judge)


def meet(judge: Judge, config: RunConfig, *, resumed: bool, say: Callable[[str], None]) -> None:
    """Ask each endpoint about an answer that is right and one that is wrong.

    Raises ConfigError where one does not judge them so, and where none answers: of a run that exists JudgeAway then, if
    it is to wait for its judge at all. An endpoint that is away is said where another answers.
    """
    opinion = config.reward.second_opinion
    assert opinion is not None, "only such a run has a judge"
    away: dict[str, str] = {}
    for same in (True, False):
        replies = judge.probe(opinion.opinion.sample(same=same))
        away |= {url: reply.failure.reason for url, reply in replies.items() if reply.failure is not None}
        _hold_to_sample(replies, opinion, same=same)
    reasons = "; ".join(away.values())
    if len(away) < len(opinion.endpoint.urls):
        for reason in away.values():
            say(f"An endpoint of {_FIELD} does not answer, the others are asked: {reason}")
    elif not resumed:
        raise ConfigError(
            f"No endpoint of {_FIELD} answers a sample question: {reasons}. Start the server, repair"
            f" {_FIELD}.endpoint, or leave {_FIELD} out."
        )
    elif opinion.on_failure == "pause":
        raise JudgeAway(
            f"No endpoint of {_FIELD} answers a sample question: {reasons}. Bring it back, name another one (--set"
            f" {_FIELD}.endpoint.urls=[URL]), or go on without it: --amend {_FIELD}.on_failure=rule"
        )
    else:
        say(f"No endpoint of {_FIELD} answers; on_failure is {opinion.on_failure}: {reasons}")


def _hold_to_sample(replies: Mapping[str, Reply], opinion: SecondOpinionConfig, *, same: bool) -> None:
    wanted = "equivalent" if same else "different"
    for url, reply in replies.items():
        if reply.text is None or read_reply(reply.text) == wanted:
            continue
        raise ConfigError(
            f"{url} is no judge: about an answer that is {wanted} it says {reply.text[-200:]!r}, where the last line"
            f" has to be {wanted.upper()}. Use a model that follows instructions, or raise {_FIELD}.max_tokens"
            f" (now {opinion.max_tokens}) for one that thinks aloud."
        )


def _key(variable: str | None) -> str | None:
    """The API key. It stays in this process: those that a run starts are given an environment of their own."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(
            f"{_FIELD}.endpoint.api_key_env names {variable}, which is not set: export it before the run starts."
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"The key in {variable} has letters that no header can carry: export it again.")
    return key
