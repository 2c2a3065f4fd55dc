"""Look at a run: its frames by iteration, with polars alone. Nothing is written, nothing heavy is imported.

from papo.runs import open_run
run = open_run("runs/arithmetic")
run.rollouts(7)                                        # texts, rewards, process scores, advantages, side by side
run.frame(7, "advantage")                              # one stage's frame as it was published
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from papo.errors import DataError

KEY = ["group_id", "sample_index"]


@dataclass(frozen=True)
class RunView:
    """A run directory, read only. Only committed iterations are seen."""

    folder: Path

    @cached_property
    def iterations(self) -> list[int]:
        """Committed iterations in order, the genesis (−1) left out."""
        folders = (self.folder / "iterations").glob("[0-9]*/commit.json")
        return sorted(int(commit.parent.name) for commit in folders)

    def commit(self, iteration: int) -> dict[str, Any]:
        """An iteration's commit: entries, state after it, summary. −1 is the genesis.

        Raises DataError, naming what there is, for an iteration that is not committed.
        """
        name = "genesis" if iteration < 0 else f"{iteration:05d}"
        path = self.folder / "iterations" / name / "commit.json"
        if not path.is_file():
            there = f"0 to {self.iterations[-1]}" if self.iterations else "none"
            raise DataError(f"Iteration {iteration} of {self.folder} is not committed. Committed iterations: {there}.")
        return json.loads(path.read_bytes())

    def frame(self, iteration: int, stage: str) -> pl.DataFrame:
        """All shards of a stage's frame, in order. Raises DataError if the iteration has no such stage."""
        entries = self.commit(iteration)["entries"]
        paths = [self.folder / entry["path"] for entry in entries if entry["stage"] == stage and entry["path"]]
        if not paths:
            stages = ", ".join(dict.fromkeys(entry["stage"] for entry in entries))
            raise DataError(f"Iteration {iteration} has no frames of {stage!r}. Its stages: {stages}.")
        return pl.concat([pl.read_parquet(path) for path in paths])

    def rollouts(self, iteration: int) -> pl.DataFrame:
        """One row a rollout: prompt, completion, verdict, process score where there is one, and its credit."""
        prompts = self.frame(iteration, "sample").select("group_id", "prompt", "question", "reference_answer")
        joined = self.frame(iteration, "generate").join(prompts, on="group_id", how="left", maintain_order="left")
        for stage in ("verify", "score", "advantage"):
            if any(entry["stage"] == stage for entry in self.commit(iteration)["entries"]):
                right = self.frame(iteration, stage)
                suffix = f"_{stage}"
                joined = joined.join(right, on=KEY, how="left", maintain_order="left", suffix=suffix)
        return joined

    def summaries(self) -> pl.DataFrame:
        """One row an iteration: the figures of its commit."""
        rows = [{"iteration": number, **self.commit(number)["summary"]} for number in self.iterations]
        return pl.DataFrame(rows, infer_schema_length=None)


def open_run(folder: str | Path) -> RunView:
    """Raises DataError if the folder holds no run."""
    path = Path(folder)
    if not (path / "run.yaml").is_file():
        raise DataError(f"{path} holds no run (it has no run.yaml).")
    return RunView(path)
