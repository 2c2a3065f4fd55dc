from pathlib import Path

import pytest

from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Three iterations to the end. Copied by whoever changes it."""
    bench = Bench(tmp_path_factory.mktemp("finished") / "run")
    bench.run()
    return bench


@pytest.fixture
def done(finished: Bench, tmp_path: Path) -> Bench:
    return finished.copy(tmp_path / "run")


@pytest.fixture(scope="session")
def halfway(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Two of three iterations committed with checkpoints of versions 0 and 1, and the third one begun."""
    bench = Bench(tmp_path_factory.mktemp("halfway") / "run", config_with(checkpoint={"every": 1, "keep_every": 1}))
    bench.run(limit=2)
    return bench


@pytest.fixture
def paused(halfway: Bench, tmp_path: Path) -> Bench:
    return halfway.copy(tmp_path / "run")
