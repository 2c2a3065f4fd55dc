"""Another number of ranks adds gradients up in another order: the run goes on, and its record says so."""

from dataclasses import replace
from pathlib import Path

from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench

FOUR = {"iterations": 4}


def test_bug_101_a_run_that_goes_on_at_another_number_of_ranks_is_another_lineage_from_there_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", config_with(**FOUR))
    bench.run(limit=2)
    wider = replace(bench, config=config_with(**FOUR, engine={"shard_size": 2, "ranks": 2, "zero_stage": 2}))
    # Opened and left again before anything was committed: the record does not depend on this process.
    wider.opened(lambda run: None)
    wider.run()
    assert [commit.lineage for commit in wider.commits] == [0, 0, 0, 1, 1]
    changed = wider.events("sums_changed")
    assert [line["lineage"] for line in changed] == [1, 1]
    assert changed[0]["before"] == {"ranks": 1, "zero_stage": 0, "micro_batch_size": 64}
    assert changed[0]["now"] == {"ranks": 2, "zero_stage": 2, "micro_batch_size": 64}
    assert [commit.config_sha256 for commit in wider.commits] == [bench.config.sha256] * 5


def test_the_same_ranks_are_the_same_lineage(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", config_with(**FOUR))
    bench.run(limit=2)
    bench.run()
    assert {commit.lineage for commit in bench.commits} == {0}
    assert bench.events("sums_changed") == []
