"""Second opinions in a run: which rows they change, what is recorded, and what happens where the judge fails."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.samples import samples
from papo.errors import JudgeAway
from papo.judges import Ask, EndpointSettings, Judge, Progress, Reply
from papo.judges.client import JudgeClient
from papo.rewards import AnswerMatch, Countdown, OutcomeReward, Verdict, second_opinion
from schemas.config import RunConfig
from tasks.journal import read_lines
from tasks.opening import close_run, open_run
from tasks.opinions import MOST_TRIES, Considered, second_opinions
from tasks.run import Run
from tests.simulation.judge import ScriptedJudge
from tests.simulation.test_opinions import opinionated
from tests.simulation.world import Silent, config_with
from tests.unit.papo.judges.fake_judge import FakeJudge, always, first, send, serving
from tests.unit.tasks.bench import Bench

KEY = "sesame-open-1a2b3c"


class Said(Silent):
    def __init__(self) -> None:
        self.messages: list[str] = []

    def message(self, text: str) -> None:
        self.messages.append(text)


def run_with(folder: Path, judge: Judge | None, config: RunConfig | None = None, **more: Any) -> Bench:
    bench = Bench(folder, config or opinionated())
    bench.run(judge=judge, **more)
    return bench


def rows_of(bench: Bench, stage: str) -> pl.DataFrame:
    paths = [entry.path for commit in bench.commits for entry in commit.entries if entry.stage == stage]
    return pl.concat([pl.read_parquet(bench.folder / str(path)) for path in paths])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A run whose judge always answers."""
    return run_with(tmp_path_factory.mktemp("whole") / "run", ScriptedJudge())


def test_what_the_rules_reject_may_become_right_and_every_such_row_says_so(whole: Bench, tmp_path: Path) -> None:
    """The policy answers 0 or 1, the reference is 0 or 1, and the judge accepts any 1."""
    plain = run_with(tmp_path / "run", None, config_with())
    for stage in ("verify", "evaluate"):
        rows = rows_of(whole, stage)
        flipped = rows.filter(pl.col("judged_by") == "llm")
        assert flipped.height
        assert set(flipped["extracted"]) == {"1"}
        assert flipped["correct"].all()
        assert set(flipped["llm_verdict"]) == {"equivalent"}
        assert set(flipped["llm_reply"]) == {"I see 1.\nEQUIVALENT"}
        others = rows.filter(pl.col("judged_by") != "llm")
        assert others.filter(pl.col("correct"))["llm_verdict"].null_count() == others["correct"].sum()
        assert set(others.filter(~pl.col("correct"))["llm_verdict"]) == {"different"}
        assert rows_of(plain, stage)["llm_verdict"].is_null().all()
    first_shard = rows_of(whole, "verify").head(2)
    assert first_shard["accuracy_reward"].to_list() == first_shard["correct"].cast(pl.Float64).to_list()


def test_the_figures_say_how_much_of_the_accuracy_is_the_llms_word(whole: Bench, tmp_path: Path) -> None:
    for commit in whole.commits[1:]:
        paths = [entry.path for entry in commit.entries if entry.stage == "verify"]
        rows = pl.concat([pl.read_parquet(whole.folder / str(path)) for path in paths])
        assert commit.summary["llm_corrected"] == (rows["judged_by"] == "llm").mean()
        assert commit.summary["llm_asked"] == rows["llm_verdict"].is_not_null().mean()
        assert commit.summary["llm_failed"] == (0.0 if commit.summary["llm_asked"] else None)
        assert commit.summary["accuracy"] == rows["correct"].mean()
    assert any(commit.summary.get("evaluation/llm_corrected") for commit in whole.commits)
    assert "llm_asked" not in run_with(tmp_path / "run", None, config_with()).commits[-1].summary


def test_samples_show_whose_word_a_verdict_is(whole: Bench) -> None:
    iteration = next(commit.iteration for commit in whole.commits[1:] if commit.summary["llm_corrected"])
    text = "\n".join(samples(whole.folder, at=iteration, order="first", count=9))
    assert "right by an LLM" in text


def test_bug_071_by_rule_rows_stay_wrong_and_are_counted(tmp_path: Path) -> None:
    bench = run_with(tmp_path / "run", ScriptedJudge(away=99), opinionated(on_failure="rule"))
    plain = run_with(tmp_path / "plain", None, config_with())
    for stage in ("verify", "evaluate"):
        rows = rows_of(bench, stage)
        assert rows["correct"].to_list() == rows_of(plain, stage)["correct"].to_list()
        assert set(rows.filter(~pl.col("correct"))["llm_verdict"]) == {"failed"}
    assert bench.commits[-1].summary["llm_failed"] == 1.0
    assert bench.events("judge_failed")[0]["reason"] == "http://judge/v1: no"


def test_bug_071_undecided_rows_have_no_reward_and_a_status(tmp_path: Path) -> None:
    bench = run_with(tmp_path / "run", ScriptedJudge(away=99), opinionated(on_failure="undecided"))
    rows = rows_of(bench, "verify")
    unknown = rows.filter(pl.col("status") == "judge_failed")
    assert unknown.height
    assert unknown["outcome_reward"].is_null().all()
    assert unknown["correct"].is_null().all()
    assert rows.filter(pl.col("status") == "ok")["correct"].all()
    assert sum(int(commit.summary.get("unscorable") or 0) for commit in bench.commits) == unknown.height


@pytest.mark.parametrize("on_failure", ["pause", "rule", "undecided"])
def test_a_question_that_is_refused_stays_wrong(tmp_path: Path, on_failure: str) -> None:
    """An answer that makes the judge choke must not be worth more than a wrong one, and must not stop the run."""
    judge = ScriptedJudge(away=99, cause="request")
    bench = run_with(tmp_path / "run", judge, opinionated(on_failure=on_failure))
    rows = rows_of(bench, "verify")
    assert set(rows.filter(~pl.col("correct"))["llm_verdict"]) == {"failed"}
    assert rows["outcome_reward"].null_count() == 0
    assert judge.probed == 0


def test_a_question_that_fails_again_and_again_does_not_stop_a_judge_that_answers_others(tmp_path: Path) -> None:
    """The first evaluation has one rejected answer here: it is asked about, and then MOST_TRIES times alone."""
    judge = ScriptedJudge(chokes=1 + MOST_TRIES)
    bench = run_with(tmp_path / "run", judge)
    first_ones = pl.read_parquet(bench.paths("iterations/genesis/evaluations-0000-*.parquet")[0])
    assert set(first_ones["llm_verdict"].drop_nulls()) == {"failed"}
    assert set(rows_of(bench, "verify")["llm_verdict"].drop_nulls()) == {"equivalent", "different"}
    assert judge.probed == MOST_TRIES


def test_a_judge_that_takes_few_questions_at_a_time_gets_few(whole: Bench, tmp_path: Path) -> None:
    bench = run_with(tmp_path / "run", ScriptedJudge(most=1))
    assert bench.hashes() == whole.hashes()


def test_bug_071_a_run_waits_for_its_judge_and_is_then_what_it_would_have_been(whole: Bench, tmp_path: Path) -> None:
    said = Said()
    judge = ScriptedJudge(away=4, reason="answered 503")
    bench = run_with(tmp_path / "run", judge, reporter=said)
    assert bench.hashes() == whole.hashes()
    assert bench.events("judge_away")[0]["reason"] == "http://judge/v1: answered 503"
    assert bench.events("judge_back")
    waiting = [text for text in said.messages if "waits for the judge" in text]
    assert len(waiting) >= 3
    for part in ("evaluate waits", "http://judge/v1: answered 503", "Next look in 1 s", "s more", "--amend"):
        assert part in waiting[0]


def test_bug_071_a_judge_that_stays_away_stops_the_run_and_it_resumes_when_it_is_back(
    whole: Bench, tmp_path: Path
) -> None:
    bench = Bench(tmp_path / "run", opinionated())
    bench.run(judge=ScriptedJudge(), limit=1)
    judge = ScriptedJudge(away=10**6)
    with pytest.raises(JudgeAway) as stop:
        bench.run(judge=judge)
    for part in ("http://judge/v1: no", "pause_seconds", "resume", "--amend reward.second_opinion.on_failure=rule"):
        assert part in str(stop.value)
    assert stop.value.exit_code == 3
    assert len(bench.commits) == 2
    bench.run(judge=ScriptedJudge())
    assert bench.hashes() == whole.hashes()


def test_the_way_out_of_waiting_is_a_recorded_change(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", opinionated(pause_seconds=10.0))
    bench.run(judge=ScriptedJudge(), limit=1)
    with pytest.raises(JudgeAway):
        bench.run(judge=ScriptedJudge(away=10**6))
    run, _ = open_run(bench.around(judge=ScriptedJudge(away=99)), "bench", opinionated(on_failure="rule"), amend=True)
    close_run(run)
    bench.config = opinionated(on_failure="rule")
    bench.run(judge=ScriptedJudge(away=99))
    assert bench.commits[-1].summary["llm_failed"] == 1.0
    assert len({commit.config_sha256 for commit in bench.commits}) == 2


def test_a_judge_that_changes_its_mind_does_not_change_what_is_recorded(whole: Bench, tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", opinionated())
    bench.run(judge=ScriptedJudge(), limit=1)
    before = rows_of(bench, "verify")
    fickle = ScriptedJudge()
    fickle.accepts = ("0",)
    bench.run(judge=fickle)
    assert rows_of(bench, "verify").head(before.height).equals(before)
    assert bench.hashes()[0][:2] == whole.hashes()[0][:2]
    flipped = rows_of(bench, "verify").slice(before.height).filter(pl.col("judged_by") == "llm")
    assert set(flipped["extracted"]) == {"0"}


def test_published_shards_are_not_asked_about_again(whole: Bench, tmp_path: Path) -> None:
    """Stopped between two shards of one stage: the second start asks about the second shard alone."""
    straight = ScriptedJudge()
    run_with(tmp_path / "straight", straight)

    class Dies(ScriptedJudge):
        def ask_all(self, asks: Any, progress: Any = None) -> Any:
            if len(self.asked) >= 3:
                raise KeyboardInterrupt
            return super().ask_all(asks, progress)

    bench = Bench(tmp_path / "run", opinionated())
    dying, again = Dies(), ScriptedJudge()
    with pytest.raises(KeyboardInterrupt):
        bench.run(judge=dying)
    bench.run(judge=again)
    assert bench.hashes() == whole.hashes()
    assert [ask.sha256 for ask in dying.asked + again.asked] == [ask.sha256 for ask in straight.asked]


def test_a_run_that_was_amended_to_have_no_judge_asks_nobody(tmp_path: Path) -> None:
    bench = run_with(tmp_path / "run", None)
    assert set(rows_of(bench, "verify")["llm_verdict"].drop_nulls()) == {"failed"}


def considered_of(bench: Bench, judge: Judge, rows: int, outcome: OutcomeReward) -> list[Considered]:
    """As many answers as rows, all rejected by the rules."""
    verdicts = [Verdict(accuracy=0.0, correct=False, status="ok", extracted="1")] * rows
    about = pl.DataFrame({"question": [f"{row}?" for row in range(rows)], "reference_answer": ["0"] * rows})

    def use(run: Run) -> list[Considered]:
        consider = second_opinions(run, bench.config, outcome, stage="verify", iteration=0)
        return list(consider(iter(verdicts), about))

    return bench.opened(use, judge=judge)


def test_what_fails_together_is_asked_in_ever_smaller_parts_until_it_is_answered(whole: Bench, tmp_path: Path) -> None:
    """All eight, all eight, four and two fail: none of that is held against a single question."""
    judge = ScriptedJudge(chokes=4)
    found = considered_of(whole.copy(tmp_path / "run"), judge, 8, AnswerMatch())
    assert [each.opinion for each in found] == ["equivalent"] * 8
    assert len(judge.asked) == 8


def test_the_limit_on_waiting_is_on_waiting_without_any_answer(whole: Bench, tmp_path: Path) -> None:
    class OneByOne(ScriptedJudge):
        def ask_all(self, asks: Sequence[Ask], progress: Progress | None = None) -> list[Reply]:
            return [*super().ask_all(asks[:1]), *(self._failed() for _ in asks[1:])]

    bench = whole.copy(tmp_path / "run")
    bench.config = opinionated(pause_seconds=12.0)
    assert len(considered_of(bench, OneByOne(), 12, AnswerMatch())) == 12


def test_rewards_whose_rules_are_complete_are_left_alone(whole: Bench, tmp_path: Path) -> None:
    judge = ScriptedJudge()
    found = considered_of(whole.copy(tmp_path / "run"), judge, 2, Countdown())
    assert [(each.opinion, each.verdict.correct) for each in found] == [(None, False)] * 2
    assert judge.asked == []


def keys_of(bench: Bench, stage: str) -> set[str]:
    return {entry.key for commit in bench.commits for entry in commit.entries if entry.stage == stage}


def test_another_prompt_is_another_key(whole: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_opinion, "_SYSTEM", "Say EQUIVALENT or DIFFERENT.")
    other = run_with(tmp_path / "run", ScriptedJudge(), limit=1)
    for stage in ("verify", "evaluate"):
        assert not keys_of(other, stage) & keys_of(whole, stage)
    assert keys_of(other, "prepare") == keys_of(whole, "prepare")


def client(url: str, key: str | None = KEY) -> JudgeClient:
    settings = EndpointSettings(urls=(url,), attempts=1, answer_seconds=5.0, batch_seconds=30.0)
    return JudgeClient(settings, api_key=key, first_pause=0.01)


def accepts_ones(parts: dict[str, str]) -> str:
    candidate = parts["candidate answer"]
    return f"I see {candidate}.\n{'EQUIVALENT' if candidate in ('1', '0.5') else 'DIFFERENT'}"


@pytest.mark.parametrize("status", [500, 429, 200, 401])
def test_bug_071_over_http_too(whole: Bench, tmp_path: Path, status: int) -> None:
    """Five times nothing but errors (or a page), then answers: the run is the one that a judge in memory made."""
    judge = FakeJudge(answer=accepts_ones, fail=first(5, always(status, b"<html>")))
    with serving(judge):
        bench = run_with(tmp_path / "run", client(judge.url))
    assert bench.hashes() == whole.hashes()
    assert bench.events("judge_away")


def test_the_key_is_in_no_file_of_a_run_and_in_no_message(tmp_path: Path) -> None:
    judge, said = FakeJudge(answer=accepts_ones), Said()
    judge.fail = lambda handler, number: number % 2 == 0 and send(handler, 500, f"no {KEY}".encode())
    config = opinionated(endpoint={"urls": ["http://judge/v1"], "api_key_env": None}, pause_seconds=500.0)
    bench = Bench(tmp_path / "run", config)
    with serving(judge):
        bench.run(judge=client(judge.url), reporter=said, limit=1)
        judge.fail = lambda handler, number: send(handler, 401, f"no {KEY}".encode())
        with pytest.raises(JudgeAway) as stop:
            bench.run(judge=client(judge.url), reporter=said)
    assert judge.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert said.messages
    assert KEY not in str(stop.value) + "".join(said.messages)
    files = [path for path in bench.folder.rglob("*") if path.is_file()]
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    reasons = [line["reason"] for line in read_lines(bench.disk.read("events.jsonl")) if line["event"] == "judge_away"]
    assert any("(the key)" in reason for reason in reasons)
