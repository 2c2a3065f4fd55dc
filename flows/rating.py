"""`papo data rate` and `papo data visits`: how often rows are solved, as files that `papo data prepare` reads.

Rating is the evaluation before the first iteration of a run of its own, whose held-out rows are the training rows: the
same prompts, sampler, rewards, shards and keys, and it goes on after a crash as every run does.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from flows.build import open_config
from flows.conduct import terminations
from flows.iteration import first_policy
from flows.proposals import Proposals
from flows.reporters import Live
from papo import passrates
from papo.advantages import Grpo
from papo.algorithm import Algorithm
from papo.errors import DataError, Interrupted, PapoError
from papo.runs import open_run
from schemas.canonical import sha256_of
from schemas.config import EvaluationConfig, RunConfig, TrackingConfig
from schemas.loading import load_config
from schemas.runids import checked_run_id
from tasks.calling import direct
from tasks.opening import close_run

SHOWN = 10
"""Ids that are shown of a longer list."""


def rate(config: str, *, samples: int, output: Path, reporter: Live, by: Proposals) -> Iterator[str]:
    """Sample every training row `samples` times by the config's first policy, judge, and write a pass rate a row."""
    path = Path(config)
    asked = rating_of(load_config(path, by.overrides), samples=samples)
    rated_from = f" (it is made of the name of {path}: give that file another one)"
    name = checked_run_id(f"{path.stem}-rates-{_address(asked)}", source=rated_from)
    with terminations():
        run, state = open_config(name, asked, base=path.parent, reporter=reporter, places=by.places)
    try:
        with terminations():
            if state is None:
                first_policy(run, direct(run))
    except (KeyboardInterrupt, Interrupted) as stop:
        reason = str(stop) or "Stopped by Ctrl-C"
        raise Interrupted(f"{reason}. What was sampled is kept: the same command goes on from there.") from None
    except PapoError as error:
        error.args = (f"{error}\nWhat was sampled is kept: the same command goes on from there.",)
        raise
    finally:
        reporter.end()
        close_run(run)
    found = passrates.of_first_policy(open_run(by.places.run(name)))
    yield from _written(found, output)
    yield from _summary(found, min_visits=1)
    yield f"Sampled     in {by.places.run(name)}, which may be deleted"
    use = by("data prepare", config, options=[("--pass-rates", str(output)), ("--output", f"{path.stem}-clean")])
    yield f"Use them: {use}"


def visits(folder: Path, *, min_visits: int, output: Path | None) -> Iterator[str]:
    """Which rows a run has solved never, or always, in `min_visits` visits or more (BUG-133)."""
    found = passrates.of_training(open_run(folder))
    if output is not None:
        yield from _written(found, output)
    yield from _summary(found, min_visits=min_visits)


def rating_of(config: RunConfig, *, samples: int) -> RunConfig:
    """The run whose first evaluation is the rating: the config's data, model, sampling and rewards, nothing trained."""
    data = config.data.model_copy(update={"evaluation": config.data.train})
    outcome = config.evaluation.outcome if config.evaluation is not None else None
    return RunConfig(
        seed=config.seed,
        iterations=1,
        data=data,
        model=config.model,
        sampling=config.sampling.model_copy(update={"filter_groups": None, "filter_accuracy": None}),
        reward=config.reward,
        algorithm=Algorithm(advantage=Grpo()),
        optimizer=config.optimizer,
        engine=config.engine,
        generator=config.generator,
        evaluation=EvaluationConfig(
            every=1,
            temperature=config.sampling.temperature,
            samples=samples,
            shard_size=config.engine.shard_size,
            outcome=outcome,
        ),
        tracking=TrackingConfig(mlflow="off"),
    )


def _address(asked: RunConfig) -> str:
    """What tells ratings apart, places included: another file or model is another rating."""
    return sha256_of([asked.identity, asked.data.model_dump(mode="json"), asked.model.model_dump(mode="json")])[:8]


def _written(rates: pl.DataFrame, output: Path) -> Iterator[str]:
    """The rows that have a rate, as JSON lines; the file is there whole or not at all."""
    known = rates.filter(pl.col("pass_rate").is_not_null())
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in known.iter_rows(named=True))
    draft = output.with_name(output.name + ".partial")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            # A name must not be there before its rows are: a power cut would leave it empty.
            os.fsync(file.fileno())
        draft.replace(output)
    except OSError as error:
        raise DataError(f"{output} cannot be written ({error.strerror}): check folder and permissions.") from None
    undecided = rates.height - known.height
    left_out = f"; {undecided} rows without a decided try are left out" if undecided else ""
    yield f"Written     {output}: {known.height} rows{left_out}"


def _summary(rates: pl.DataFrame, *, min_visits: int) -> Iterator[str]:
    enough = rates.filter(pl.col("visits") >= min_visits)
    tries = int(rates["tries"].sum())
    right = int(rates["right"].sum()) / tries if tries else 0.0
    predicted = " (predicted by a reward model)" if rates["judged_by"].str.contains("reward_model").any() else ""
    yield f"Solved      {right:.1%} of {tries} decided tries{predicted}"
    yield f"Rows        {rates.height}, of which {enough.height} were visited {min_visits} times or more; of those"
    for label, found in (
        ("Never      ", passrates.unsolved(rates, min_visits=min_visits)),
        ("Always     ", passrates.solved(rates, min_visits=min_visits)),
    ):
        ids = found["prompt_id"].to_list()
        more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
        yield f"{label} {len(ids)} rows{': ' if ids else ''}{', '.join(ids[:SHOWN])}{more}"
