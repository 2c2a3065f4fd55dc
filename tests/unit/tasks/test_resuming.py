"""A resumed run is the run that was never stopped: data, seeds, gold answers, changed data."""

import random
from pathlib import Path

import polars as pl
import pytest

from papo.errors import DataError
from schemas.config import RunConfig
from tasks.run import RawData, Run
from tests.simulation.world import config_with, sources
from tests.unit.tasks.bench import Bench

SIX = {"iterations": 6, "prompts_per_iteration": 2}


def prompts_of(bench: Bench) -> list[list[str]]:
    refs = [entry for commit in bench.commits[1:] for entry in commit.entries if entry.stage == "sample"]
    return [pl.read_parquet(bench.folder / str(ref.path))["prompt_id"].to_list() for ref in refs]


def rollouts_of(bench: Bench) -> pl.DataFrame:
    refs = [entry for commit in bench.commits[1:] for entry in commit.entries if entry.stage == "generate"]
    return pl.concat([pl.read_parquet(bench.folder / str(ref.path)) for ref in refs])


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(tmp_path_factory.mktemp("six") / "run", config_with(**SIX))
    bench.run()
    return bench


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_bug_093_and_095_resumed_prompts_and_rollouts_are_those_of_the_straight_run(
    six: Bench, tmp_path: Path, stop: int
) -> None:
    bench = Bench(tmp_path / "run", config_with(**SIX))
    bench.run(limit=stop)
    bench.run()
    assert prompts_of(bench) == prompts_of(six)
    assert rollouts_of(bench).equals(rollouts_of(six))
    assert bench.hashes() == six.hashes()
    assert [commit.iteration for commit in bench.commits] == [-1, 0, 1, 2, 3, 4, 5], "no gap and no repeat"


def test_bug_026_each_epoch_draws_every_prompt_once(six: Bench) -> None:
    drawn = [prompt for prompts in prompts_of(six) for prompt in prompts]
    first, second = drawn[:5], drawn[5:10]
    assert sorted(first) == sorted(second) == [f"train-{row}" for row in range(5)]
    assert first != second


def test_bug_025_every_group_has_its_rows(six: Bench) -> None:
    counts = rollouts_of(six).group_by("group_id").len().sort("group_id")
    assert counts["group_id"].to_list() == list(range(12)), "a row that is drawn again is another group"
    assert set(counts["len"].to_list()) == {2}


def test_bug_026_and_027_every_rollout_is_an_input_of_exactly_one_update(six: Bench) -> None:
    """How often the update uses it is the engine's part: ppo_epochs times."""
    updates = six.paths("iterations/0*/update-*.json")
    assert len(updates) == 6
    used = [ref for commit in six.commits[1:] for ref in commit.entries if ref.stage == "generate"]
    inputs = [ref for number in range(6) for ref in recorded_inputs(six, number)]
    assert sorted(inputs) == sorted(str(ref.path) for ref in used)


def recorded_inputs(bench: Bench, iteration: int) -> list[str]:
    entry = next(entry for entry in bench.commits[iteration + 1].entries if entry.stage == "update")

    def inputs(run: Run) -> list[str]:
        update = run.store.recorded_update("update", iteration, entry.key)
        assert update is not None
        return [ref.path for ref in update.inputs if ref.stage == "generate"]

    return bench.opened(inputs)


def changed(config: RunConfig) -> dict[str, RawData]:
    """A row of the training data was repaired."""
    found = sources(config)
    frame = found["train"].frame.with_columns(
        pl.when(pl.col("prompt_id") == "train-3")
        .then(pl.lit("9"))
        .otherwise("reference_answer")
        .alias("reference_answer")
    )
    return {**found, "train": RawData(frame=frame, sha256="f" * 64)}


def test_bug_134_repaired_data_are_refused_by_name(paused: Bench) -> None:
    before = paused.hashes()
    with pytest.raises(DataError, match=r"data\.train \(chains\) has changed since(.|\n)*start a new run"):
        paused.run(sources=changed)
    assert paused.hashes() == before


def shuffled(config: RunConfig) -> dict[str, RawData]:
    """Distinct gold answers, in rows that stand in another order than their numbers."""
    rows = list(range(5))
    random.Random(3).shuffle(rows)
    frame = pl.DataFrame(
        {
            "prompt_id": [f"train-{row}" for row in rows],
            "source": ["train"] * 5,
            "prompt": [f"{row}+1=" for row in rows],
            "is_messages": [False] * 5,
            "reference_answer": [str(row % 2) if row != 4 else "4" for row in rows],
        }
    )
    return {**sources(config), "train": RawData(frame=frame, sha256="a" * 64)}


def test_bug_135_each_row_is_judged_by_its_own_gold_answer(tmp_path: Path) -> None:
    """Also after a resume, and though rows are drawn in an order of their own."""
    bench = Bench(tmp_path / "run", config_with(**SIX))
    bench.run(limit=3, sources=shuffled)
    bench.run(sources=shuffled)
    gold = {f"train-{row}": str(row % 2) if row != 4 else "4" for row in range(5)}
    rollouts = rollouts_of(bench)
    refs = [entry for commit in bench.commits[1:] for entry in commit.entries if entry.stage == "verify"]
    outcomes = pl.concat([pl.read_parquet(bench.folder / str(ref.path)) for ref in refs])
    joined = rollouts.join(outcomes, on=["group_id", "sample_index"], validate="1:1")
    assert joined.height == rollouts.height == 24
    for row in joined.iter_rows(named=True):
        assert row["correct"] == (row["extracted"] == gold[row["prompt_id"]])
    assert joined["correct"].any()
    assert not joined["correct"].all()


def test_a_run_holds_its_model_s_files_and_no_path_in_a_frame(done: Bench) -> None:
    for path in done.paths("iterations/*/*.parquet"):
        text = [column for column in pl.read_parquet(path).iter_columns() if column.dtype == pl.String]
        words = {str(value) for column in text for value in column.drop_nulls().unique().to_list()}
        assert not {word for word in words if str(done.folder.parent) in word or "bench" in word}
