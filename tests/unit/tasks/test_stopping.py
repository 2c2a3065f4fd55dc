"""When a run stops by itself, and that it says why."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.engines.protocol import Progress
from papo.engines.requests import Generate, Update, UpdateResult
from schemas.records import Commit
from tasks.history import History, history_of
from tasks.stopping import stop_reason
from tests.simulation.engine import STATS, ScriptedEngine
from tests.simulation.world import CONFIG, config_with
from tests.unit.tasks.bench import Bench


def with_summaries(commits: list[Commit], *summaries: dict[str, Any]) -> History:
    return history_of([commits[-1].model_copy(update={"summary": summary}) for summary in summaries])


CUT, WHOLE = {"truncated_ratio": 1.0}, {"truncated_ratio": 0.99}
SKIPPED = {"update/skipped_steps": 1, "update/optimizer_steps": 0}
PARTLY = {"update/skipped_steps": 1, "update/optimizer_steps": 1}


@pytest.mark.parametrize(
    ("summaries", "reason"),
    [
        ([CUT, CUT], None),
        ([CUT, CUT, WHOLE], None),
        ([CUT, WHOLE, CUT, CUT], None),
        ([WHOLE, CUT, CUT, CUT], "all_truncated: every completion of the last 3 iterations"),
        ([SKIPPED, SKIPPED], None),
        ([SKIPPED, SKIPPED, PARTLY], None),
        ([SKIPPED] * 3, "non_finite: no optimizer step of the last 3 iterations"),
        ([{"evaluation/accuracy": 0.89}], None),
        ([{"evaluation/accuracy": 0.9}], "target_accuracy: held-out accuracy 0.900 has reached 0.9"),
        ([{"evaluation/accuracy": 0.95}, {}], None),
    ],
)
def test_bug_040_a_run_stops_for_a_reason(done: Bench, summaries: list[dict], reason: str | None) -> None:
    config = config_with(stop={"target_accuracy": 0.9, "all_truncated": 3, "non_finite": 3})
    found = stop_reason(config, with_summaries(done.commits, *summaries))
    assert found is None if reason is None else str(found).startswith(reason)


@pytest.mark.parametrize(
    ("rule", "kept", "reason"),
    [
        ("stop", 1, "exhausted: 3 rounds of drawing gave too few groups with a signal for 2 prompts"),
        ("stop", 2, None),
        ("skip", 1, None),
    ],
)
def test_bug_030_rounds_that_give_too_few_groups_stop_the_run_where_it_is_asked_to(
    done: Bench, rule: str, kept: int, reason: str | None
) -> None:
    sampling = CONFIG["sampling"] | {"filter_groups": {"max_num_gen_batches": 3, "when_exhausted": rule}}
    found = stop_reason(config_with(sampling=sampling), with_summaries(done.commits, {"groups_kept": kept}))
    assert found is None if reason is None else str(found).startswith(reason)


ZERO, SOME = {"zero_advantage_ratio": 1.0}, {"zero_advantage_ratio": 0.9}
NULL = {"rollouts": 8, "unscorable": 8, "zero_advantage_ratio": None}


@pytest.mark.parametrize(
    ("stop", "summaries", "reason"),
    [
        ({"no_signal": 2}, [ZERO, ZERO], "no_signal: every advantage of the last 2 iterations was 0"),
        ({"no_signal": 2}, [ZERO, SOME], None),
        ({"no_signal": None}, [ZERO] * 50, None),
        ({"no_signal": 2}, [NULL, NULL], "no_signal: no rollout of the latest iteration has a reward"),
        ({"no_signal": 2}, [NULL, ZERO], "no_signal: every advantage of the last 2 iterations was 0"),
        ({"no_signal": 2}, [NULL, {**NULL, "unscorable": 7, "zero_advantage_ratio": 0.5}], None),
        ({"max_ppo_kl": 0.1}, [{"update/ppo_kl": 0.11}], "blow_up: the policy moved further in one update"),
        ({"max_ppo_kl": 0.1}, [{"update/ppo_kl": 0.09}], None),
        ({"max_kl": 5.0}, [{"update/kl_loss": 6.0}], "blow_up: the policy is further from its reference"),
        ({"max_kl": 5.0}, [{"update/kl_loss": None}], None),
        ({"max_kl": 5.0}, [{"reference_kl": 6.0}], "blow_up: the policy is further from its reference"),
        ({"max_length_growth": 2.0}, [{"length_mean": 10.0}, {"length_mean": 20.5}], "blow_up: completions grew"),
        ({"max_length_growth": 2.0}, [{"length_mean": 10.0}, {"length_mean": 19.5}], None),
        ({"min_entropy": 0.1}, [{"update/entropy": 0.05}], "entropy: the policy's entropy is 0.05"),
        ({"min_entropy": 0.1}, [{"update/entropy": None}], None),
    ],
)
def test_guards_name_what_went_wrong(
    done: Bench, stop: dict[str, Any], summaries: list[dict[str, Any]], reason: str | None
) -> None:
    found = stop_reason(config_with(stop=stop), with_summaries(done.commits, *summaries))
    assert found is None if reason is None else str(found).startswith(reason)


@pytest.mark.parametrize(
    ("accuracies", "stops"),
    [
        ([0.5, 0.6, 0.6, 0.55], True),
        ([0.5, 0.6, 0.6, 0.61], False),
        ([0.5, 0.4], False),
        ([0.5, 0.4, 0.4, None], False),
    ],
)
def test_a_plateau_is_evaluations_without_a_better_one(
    done: Bench, accuracies: list[float | None], stops: bool
) -> None:
    commits = with_summaries(done.commits, *({"evaluation/accuracy": accuracy} for accuracy in accuracies))
    assert (stop_reason(config_with(stop={"plateau_evaluations": 2}), commits) is not None) == stops


def test_an_amendment_starts_the_count_anew(done: Bench) -> None:
    mended = config_with(sampling={"num_generations": 2, "max_prompt_length": 16, "max_completion_length": 9})
    commits = with_summaries(done.commits, CUT, CUT, CUT)
    assert stop_reason(config_with(), commits) is not None
    assert stop_reason(mended, commits) is None


class Rambling(ScriptedEngine):
    """Never ends an answer."""

    def generate(self, request: Generate, progress: Progress | None = None) -> None:
        super().generate(request, progress)
        self._write(request.output, self._read(request.output).with_columns(pl.lit("length").alias("finish_reason")))


def test_bug_040_a_run_of_cut_answers_stops_and_stays_stopped(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", config_with(iterations=9, stop={"all_truncated": 2}))
    for _ in range(2):
        reason = bench.run(engine=lambda _: Rambling(bench.disk))
        assert reason is not None
        assert reason.startswith("all_truncated")
        assert "--amend sampling.max_completion_length" in reason
        assert len(bench.commits) == 3, "the genesis and the two iterations that were allowed"
    assert [commit.summary.get("truncated_ratio") for commit in bench.commits[1:]] == [1.0, 1.0]


class NotFinite(ScriptedEngine):
    """Skips every step, as a learner does whose loss is not a number."""

    def update(self, request: Update, progress: Progress | None = None) -> UpdateResult:
        held = self.held
        assert held is not None
        return UpdateResult(
            fingerprint=held, stats={**STATS, "loss": float("nan"), "optimizer_steps": 0, "skipped_steps": 1}
        )


def test_bug_104_and_108_a_streak_of_steps_without_finite_numbers_stops_the_run_with_a_hint(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", config_with(iterations=9, stop={"non_finite": 2}))
    reason = bench.run(engine=lambda _: NotFinite(bench.disk))
    assert reason is not None
    assert reason.startswith("non_finite")
    assert "Lower optimizer.learning_rate or check the rewards" in reason
    assert config_with().stop.non_finite == 3, "and by default that is before 500 steps of nothing"
    commits = bench.commits
    assert len(commits) == 3
    assert len({commit.state.policy.fingerprint.policy_sha256 for commit in commits}) == 1, (
        "the weights were left as they were"
    )
    assert commits[-1].summary["update/loss"] is None, "a number that is not finite has no place in a record"


def test_a_target_ends_the_run_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", config_with(stop={"target_accuracy": 0.001}, evaluation={"every": 1}))
    reason = bench.run()
    assert reason is None or reason.startswith("target_accuracy")
    reached = next(n for n, c in enumerate(bench.commits) if (c.summary.get("evaluation/accuracy") or 0) > 0)
    assert len(bench.commits) == reached + 1
    bench.config = config_with(evaluation={"every": 1})
    assert bench.run() is None
    assert len(bench.commits) == 4, "the horizon, since nothing stops it any more"
