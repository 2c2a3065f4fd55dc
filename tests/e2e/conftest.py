import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.build import train_sft
from flows.proposals import Places
from flows.reporters import LogReporter
from tests.e2e.trained import ROOT, Trained


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A working folder with the cold start in it: one for all files and all of pytest's processes."""
    base = tmp_path_factory.getbasetemp()
    home = (base if worker_id == "master" else base.parent) / "e2e"
    home.mkdir(exist_ok=True)
    with (home / "cold-start.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Found by its content where another process has made it before.
        train_sft(
            str(ROOT / "deployments/sft/arithmetic.yaml"),
            reporter=LogReporter(print),
            places=Places(runs=home / "runs", models=home / "models"),
        )
    return home


@pytest.fixture(scope="session")
def train(home: Path) -> Callable[..., Trained]:
    """Trains the main job with other settings, to its end: train("name", "iterations=3", …)."""

    def run(name: str, *settings: str) -> Trained:
        made = Trained(home, name)
        assert made.run(*settings) == 0, made.text
        return made

    return run


@pytest.fixture(scope="session")
def learned(train: Callable[..., Trained]) -> Trained:
    """Twelve iterations of the main job."""
    return train("learned", "iterations=12", "evaluation.every=12", "engine.shard_size=64")
