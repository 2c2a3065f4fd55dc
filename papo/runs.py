"""Look at a run: its frames by iteration, with polars alone. Nothing is written, nothing heavy is imported.

from papo.runs import open_run
run = open_run("runs/arithmetic")
run.rollouts(7)                                        # texts, rewards, process scores, advantages, side by side
run.frame(7, "advantage")                              # one stage's frame as it was published
"""

import hashlib
import io
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from papo.errors import Damaged, DataError
from papo.spelling import metrics_of

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
        """All shards of a stage's frame, in order. Raises DataError if the iteration has no such stage, and Damaged for
        a file whose bytes are not those that were published."""
        entries = self.commit(iteration)["entries"]
        made = [entry for entry in entries if entry["stage"] == stage and entry["path"]]
        if not made:
            stages = ", ".join(dict.fromkeys(entry["stage"] for entry in entries))
            raise DataError(f"Iteration {iteration} has no frames of {stage!r}. Its stages: {stages}.")
        return pl.concat([self._read(entry["path"], entry["output_sha256"]) for entry in made])

    def _read(self, path: str, sha256: str) -> pl.DataFrame:
        try:
            data = (self.folder / path).read_bytes()
        except FileNotFoundError:
            raise Damaged(f"{self.folder / path} is missing. Restore it from a copy of the run directory.") from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise Damaged(
                f"{self.folder / path} is not what was published: its bytes do not hash to {sha256[:16]}…. "
                "Restore it from a copy of the run directory."
            )
        return pl.read_parquet(io.BytesIO(data))

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

    def metrics(self) -> list[dict[str, Any]]:
        """The journal, a line an iteration in their order: `iteration`, `time` and `values`, which has the figures of
        the commit and how long each stage took. What was not finite is NaN or infinite again; None is what there was
        none of."""
        path = self.folder / "metrics.jsonl"
        return metrics_of(path.read_bytes()) if path.is_file() else []


def open_run(folder: str | Path) -> RunView:
    """Raises DataError if the folder holds no run."""
    path = Path(folder)
    if not (path / "run.yaml").is_file():
        raise DataError(f"{path} holds no run (it has no run.yaml).")
    return RunView(path)
