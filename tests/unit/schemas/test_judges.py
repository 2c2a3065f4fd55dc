"""The section of a judge: what is refused before anybody is asked, and what is part of a run's identity."""

from pathlib import Path
from typing import Any

import pytest

from papo.errors import ConfigError
from schemas.config import RunConfig
from schemas.judges import JudgeEndpoint
from schemas.loading import load_config, overridden
from schemas.rewardchecks import reward_faults
from tests.unit.schemas.test_identity import CONFIG

OPINION = "{model: judge, endpoint: {urls: ['http://127.0.0.1:8000/v1']}}"


def loaded(folder: Path, opinion: str, outcome: str = "{kind: math_answer}") -> RunConfig:
    file = folder / "run.yaml"
    file.write_text(
        f"data: {{train: {{kind: chains}}}}\nmodel: {{path: .}}\n"
        f"reward:\n  outcome: {outcome}\n  second_opinion: {opinion}\n"
    )
    return load_config(file, [])


def endpoint(**fields: Any) -> str:
    return f"{{model: judge, endpoint: {fields}}}".replace("'urls'", "urls").replace("'api_key_env'", "api_key_env")


@pytest.mark.parametrize(
    ("opinion", "says"),
    [
        ("{endpoint: {urls: ['http://127.0.0.1:1/v1']}}", "second_opinion.model is missing"),
        ("{model: judge}", "second_opinion.endpoint is missing"),
        (endpoint(urls=[]), "empty list"),
        (endpoint(urls=["http://a/v1", "http://a/v1/"]), "twice"),
        (endpoint(urls=["a:8000/v1"]), "is no URL"),
        (endpoint(urls=["ftp://a/v1"]), "is no URL"),
        (endpoint(urls=["http://a:99999/v1"]), "is no URL"),
        (endpoint(urls=["http:///v1"]), "is no URL"),
        (endpoint(urls=["https://me:hunter2@a/v1"]), "give the key by api_key_env"),
        (endpoint(urls=["https://a/v1?key=hunter2"]), "give the key by api_key_env"),
        (endpoint(urls=["https://a/v1"], api_key_env="sk-hunter2"), "no name of an environment variable"),
        (endpoint(urls=["http://judge.example/v1"], api_key_env="KEY"), "use https"),
        ("{model: judge, endpoint: {urls: ['http://a/v1'], answer_seconds: 0}}", "answer_seconds"),
        ("{model: judge, endpoint: {urls: ['http://a/v1']}, on_failure: ignore}", "pause, rule, undecided"),
    ],
)
def test_faults_of_the_section_are_named_and_no_secret_is_repeated(tmp_path: Path, opinion: str, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, opinion)
    assert says in str(error.value)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("outcome", ["{kind: code_tests}", "{kind: countdown}"])
def test_rewards_whose_rules_are_complete_take_no_second_opinion(tmp_path: Path, outcome: str) -> None:
    with pytest.raises(ConfigError, match="leaves nothing to a second opinion"):
        loaded(tmp_path, OPINION, outcome)


def with_opinion(kind: str, **more: Any) -> RunConfig:
    opinion = {"model": "judge", "endpoint": {"urls": ["http://a/v1"]}}
    return RunConfig.model_validate(CONFIG | {"reward": {"outcome": {"kind": kind}, "second_opinion": opinion}} | more)


@pytest.mark.parametrize("kind", ["math_answer", "answer_match", "multiple_choice", "knights_knaves", "zebra_grid"])
def test_the_others_do(kind: str) -> None:
    assert reward_faults(with_opinion(kind)) == []


def test_it_may_be_for_the_held_out_rows_alone() -> None:
    assert len(reward_faults(with_opinion("countdown"))) == 1
    assert reward_faults(with_opinion("countdown", evaluation={"outcome": {"kind": "math_answer"}})) == []


@pytest.mark.parametrize(
    "host", ["https://judge.example", "http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"]
)
def test_a_key_goes_over_https_or_to_this_machine(host: str) -> None:
    assert JudgeEndpoint(urls=(f"{host}/v1",), api_key_env="PAPO_JUDGE_KEY").settings.urls == (f"{host}/v1",)


def test_what_is_asked_is_identity_and_where_is_not() -> None:
    def sha(**changes: Any) -> str:
        opinion: dict[str, Any] = {"model": "judge", "endpoint": {"urls": ["http://a/v1"]}} | changes
        return RunConfig.model_validate({**CONFIG, "reward": {**CONFIG["reward"], "second_opinion": opinion}}).sha256

    without = RunConfig.model_validate(CONFIG).sha256
    assert without != sha()
    assert sha() == sha(pause_seconds=1.0)
    assert sha() == sha(endpoint={"urls": ["https://b/v1"], "concurrency": 2, "api_key_env": "KEY", "attempts": 1})
    others = (sha(model="x"), sha(max_tokens=9), sha(longest_answer=9), sha(on_failure="rule"))
    assert len({sha(), *others}) == 5


def test_the_ways_out_that_errors_name_can_be_typed() -> None:
    opinion = {"model": "judge", "endpoint": {"urls": ["http://a/v1"]}}
    config = RunConfig.model_validate({**CONFIG, "reward": {**CONFIG["reward"], "second_opinion": opinion}})
    changed = overridden(
        config,
        ["reward.second_opinion.on_failure=rule", "reward.second_opinion.endpoint.urls=[http://b/v1]"],
        named="run x",
    ).reward.second_opinion
    assert changed is not None
    assert (changed.on_failure, changed.endpoint.urls) == ("rule", ("http://b/v1",))
    assert overridden(config, ["reward.second_opinion=null"], named="run x").reward.second_opinion is None
