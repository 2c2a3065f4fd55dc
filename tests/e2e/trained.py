"""Runs of deployments/runs/arithmetic.yaml through the installed command, without Prefect."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from schemas.records import Commit
from tasks.disk import LocalDisk
from tasks.status import RunStatus, status_of
from tasks.store import RunStore

ROOT = Path(__file__).parents[2]
SECONDS = 400


@dataclass(frozen=True)
class Trained:
    home: Path
    name: str

    @property
    def folder(self) -> Path:
        return self.home / "runs" / self.name

    @property
    def text(self) -> str:
        return (self.home / f"{self.name}.out").read_text()

    @property
    def status(self) -> RunStatus:
        found = status_of(self.folder)
        assert found is not None
        return found

    @property
    def commits(self) -> list[Commit]:
        return RunStore(LocalDisk(self.folder)).commits()

    @property
    def accuracies(self) -> tuple[float, float]:
        """Held-out, sampled: before the first iteration and after the last."""
        first, latest = self.status.first_evaluation, self.status.latest_evaluation
        assert first is not None
        assert latest is not None
        assert first.accuracy is not None
        assert latest.accuracy is not None
        return first.accuracy, latest.accuracy

    def run(self, *settings: str) -> int:
        """`papo train` with `--set` for each of the settings; the exit code."""
        return self.command(
            "train", str(ROOT / "deployments/runs/arithmetic.yaml"), "--run-id", self.name,
            *(word for setting in ("tracking.mlflow=off", *settings) for word in ("--set", setting)),
        )  # fmt: skip

    def command(self, *arguments: str) -> int:
        places = ["--direct", "--runs", "runs", "--models", "models"]
        with (self.home / f"{self.name}.out").open("wb") as output:
            done = subprocess.run(
                [Path(sys.executable).with_name("papo"), *arguments, *places],
                cwd=self.home, stdout=output, stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
            )  # fmt: skip
        return done.returncode

    def entries(self, iteration: int) -> dict[str, list[tuple[str, str]]]:
        """(key, hash) of each of an iteration's outputs, by stage."""
        found: dict[str, list[tuple[str, str]]] = {}
        for entry in self.commits[iteration + 1].entries:
            found.setdefault(entry.stage, []).append((entry.key, entry.output_sha256))
        return found

    def frame(self, stage: str, iterations: Sequence[int]) -> pl.DataFrame:
        """What a stage made in these iterations."""
        entries = [entry for at in iterations for entry in self.commits[at + 1].entries if entry.stage == stage]
        return pl.concat([pl.read_parquet(self.folder / str(entry.path)) for entry in entries])

    def summary(self, iteration: int) -> dict[str, Any]:
        return dict(self.commits[iteration + 1].summary)
