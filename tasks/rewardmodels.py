"""How a reward model judges a shard: the engine scores the texts in one request, each score becomes a verdict.

A model is known by what its files hash to, wherever they are: the hash is in the key of all that it judged.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from papo.engines.protocol import Engine
from papo.engines.requests import ScoreTexts
from papo.rewards import OutcomeReward, RewardModel, Verdict
from schemas.config import RunConfig
from schemas.filechecks import resolve
from schemas.records import IterationState
from tasks.holding import using
from tasks.run import SCRATCH, Run
from tasks.store import encode

Ask = Callable[[RewardModel, pl.DataFrame], Iterator[Verdict]]
"""One verdict for each row of question, completion and finish_reason, in their order."""
_FILES = " sha256="


def asking(run: Run, state: IterationState, *, name: str) -> Ask:
    """A way to ask a reward model on the run's engine. `name`: of the scratch files."""

    def ask(model: RewardModel, rows: pl.DataFrame) -> Iterator[Verdict]:
        path = f"{SCRATCH}/{name}-texts.parquet"
        run.disk.write(path, encode(rows.select("question", "completion")))
        scores = using(run, state, lambda engine: _scored(run, engine, model, path, name))
        run.disk.remove(path)
        for score, ended in zip(scores.iter_rows(named=True), rows["finish_reason"], strict=True):
            yield model.verdict(score["score"], status=score["status"], reason=score["reason"], finish_reason=ended)

    return ask


def version_of(run: Run, outcome: OutcomeReward) -> str:
    """What judges, and by which rules: of a reward model, with what its files hash to."""
    if not isinstance(outcome, RewardModel):
        return outcome.version
    return f"{outcome.version}{_FILES}{run.hashed(_folder_of(run, outcome))}"


def note_other_files(run: Run, state: IterationState, version: str) -> None:
    """Say so where the reward model's files are not those that judged the iteration before: an event and a message."""
    _, is_model, now = version.rpartition(_FILES)
    if not is_model or not state.iteration:
        return
    last = run.store.load(run.artifact("verify", 0, iteration=state.iteration - 1))["verifier_version"][0]
    _, was_model, before = last.rpartition(_FILES)
    if was_model and before != now:
        run.journal.event("reward_model_changed", iteration=state.iteration, before=before, now=now)
        run.reporter.message(
            f"The reward model's files are others than before (sha256 {now[:16]}…, was {before[:16]}…): from iteration "
            f"{state.iteration} on another model judges."
        )


def numerics(config: RunConfig, outcome: OutcomeReward) -> dict[str, Any]:
    """What else a reward model's scores are a function of, for keys; nothing for a verifier."""
    if not isinstance(outcome, RewardModel):
        return {}
    return {"reward_model": {"threads": config.engine.threads, "dtype": config.engine.dtype}}


def _scored(run: Run, engine: Engine, model: RewardModel, path: str, name: str) -> pl.DataFrame:
    folder = _folder_of(run, model)
    return run.staged(
        f"{name}-scores",
        lambda output: engine.score_texts(
            ScoreTexts(
                model=folder,
                sha256=run.hashed(folder),
                head=model.head,
                input=model.input,
                max_length=model.max_length,
                truncate=model.truncate,
                activation=model.activation,
                trust_remote_code=model.trust_remote_code,
                rows=run.disk.local(path),
                output=output,
            ),
            run.progress,
        ),
    )


def _folder_of(run: Run, model: RewardModel) -> str:
    return str(resolve(model.path, Path(run.base)).resolve())
