"""The judge of a run is tried before the run starts: what it cannot do is said with URL, reason and way out."""

from pathlib import Path
from typing import Any

import pytest

from flows import build
from flows.judges import judge_of, meet
from flows.proposals import Places
from papo.errors import ConfigError, JudgeAway
from schemas.config import RunConfig
from tests.simulation.test_opinions import opinionated
from tests.simulation.world import Silent
from tests.unit.papo.judges import fake_judge
from tests.unit.papo.judges.fake_judge import DIFFERENT, EQUIVALENT, FakeJudge, always, closed_port, serving

KEY, VARIABLE = "sesame-open-1a2b3c", "PAPO_TEST_JUDGE_KEY"


def config_of(*urls: str, on_failure: str = "pause", **endpoint: Any) -> RunConfig:
    return opinionated(endpoint={"urls": list(urls), "answer_seconds": 0.5, **endpoint}, on_failure=on_failure)


def met(config: RunConfig, *, resumed: bool = False) -> list[str]:
    judge = judge_of(config)
    assert judge is not None
    said: list[str] = []
    meet(judge, config, resumed=resumed, say=said.append)
    return said


def test_a_judge_that_judges_the_samples_is_taken_in_silence() -> None:
    with serving(FakeJudge(answer=fake_judge.obedient)) as judge:
        assert met(config_of(judge.url)) == []
    assert sorted(judge.candidates) == ["0.5", "3"]


@pytest.mark.parametrize(
    ("says", "wanted"),
    [(EQUIVALENT, "different"), (DIFFERENT, "equivalent"), ("Certainly! They are the same.", "equivalent")],
)
def test_a_model_that_is_no_judge_is_refused(says: str, wanted: str) -> None:
    with serving(FakeJudge(answer=lambda parts: says)) as judge, pytest.raises(ConfigError) as error:
        met(config_of(judge.url), resumed=True)
    for part in (judge.url, wanted, "max_tokens", "follows instructions"):
        assert part in str(error.value)


@pytest.mark.parametrize("resumed", [False, True])
def test_bug_071_no_endpoint_that_answers_is_an_error_with_url_reason_and_way_out(resumed: bool) -> None:
    gone, broken = closed_port(), FakeJudge(fail=always(503, b"maintenance"))
    with serving(broken), pytest.raises(JudgeAway if resumed else ConfigError) as error:
        met(config_of(gone, broken.url), resumed=resumed)
    for part in (gone, "ConnectError", broken.url, "503", "maintenance", "reward.second_opinion.endpoint"):
        assert part in str(error.value)


def test_bug_071_one_endpoint_of_two_is_enough_and_the_other_is_named() -> None:
    gone = closed_port()
    with serving(FakeJudge(answer=fake_judge.obedient)) as judge:
        (said,) = met(config_of(gone, judge.url))
    assert gone in said


@pytest.mark.parametrize("on_failure", ["rule", "undecided"])
def test_a_run_that_goes_on_without_its_judge_is_not_stopped_by_its_absence(on_failure: str) -> None:
    (said,) = met(config_of(closed_port(), on_failure=on_failure), resumed=True)
    assert on_failure in said


def test_the_key_comes_from_the_variable_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"{KEY}\n")
    with serving(FakeJudge(answer=fake_judge.obedient)) as judge:
        met(config_of(judge.url, api_key_env=VARIABLE))
    assert {headers["Authorization"] for headers in judge.headers} == {f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("key", "says"), [(None, "is not set"), (" ", "is not set"), ("a\nb", "no header"), ("é", "no header")]
)
def test_a_key_that_cannot_be_used_is_an_error_that_does_not_show_it(
    key: str | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if key is not None:
        monkeypatch.setenv(VARIABLE, key)
    with pytest.raises(ConfigError, match=says) as error:
        judge_of(config_of("http://127.0.0.1:1/v1", api_key_env=VARIABLE))
    assert VARIABLE in str(error.value)
    assert "é" not in str(error.value)


def test_a_run_without_second_opinion_has_no_judge() -> None:
    assert (
        judge_of(
            RunConfig.model_validate(opinionated().model_dump() | {"reward": {"outcome": {"kind": "answer_match"}}})
        )
        is None
    )


def test_a_judge_that_is_away_is_found_before_anything_is_created(tmp_path: Path) -> None:
    places, quiet = Places(runs=tmp_path), Silent()
    with pytest.raises(ConfigError, match="No endpoint"):
        build.open_config(
            "new", config_of(closed_port()), base=tmp_path, amend=False, reporter=quiet, places=places, advancing=True
        )
    assert list(tmp_path.iterdir()) == []
