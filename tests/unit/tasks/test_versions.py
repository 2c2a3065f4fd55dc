"""Which weights each rollout came from: never staler than the update that uses it."""

from itertools import pairwise
from pathlib import Path

import polars as pl

from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench


def test_bug_050_every_row_is_of_the_version_that_its_update_starts_from(tmp_path: Path) -> None:
    """Staleness is 0, also over a resume: an off-by-one would show at one of the ends."""
    bench = Bench(tmp_path / "run", config_with(iterations=4))
    bench.run(limit=2)
    bench.run()
    commits = bench.commits
    for before, commit in pairwise(commits):
        for entry in (entry for entry in commit.entries if entry.stage == "generate"):
            rows = pl.read_parquet(bench.folder / str(entry.path))
            assert rows["policy_version"].unique().to_list() == [commit.iteration] == [before.state.policy.version]
            assert rows["policy_sha256"].unique().to_list() == [before.state.policy.fingerprint.policy_sha256]
    assert len(commits) == 5
