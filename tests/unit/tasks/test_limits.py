"""Prompts over the limit, completions cut at it, rewards that say nothing: rules with names, applied and recorded."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.errors import DataError
from schemas.config import RunConfig
from tasks.run import RawData
from tests.simulation.engine import ScriptedEngine
from tests.simulation.world import CONFIG, config_with, sources
from tests.unit.tasks.bench import Bench

LIMIT = 5


def of_lengths(config: RunConfig) -> dict[str, RawData]:
    """Prompts of limit − 1, limit and limit + 1 tokens (the scripted tokenizer makes one of each letter)."""
    frame = pl.DataFrame(
        {
            "prompt_id": ["below", "at", "above"],
            "source": ["train"] * 3,
            "prompt": ["1+1="[: LIMIT - 1], "1+10=", "1+100="],
            "is_messages": [False] * 3,
            "reference_answer": ["0", "1", "1"],
        }
    )
    return {**sources(config), "train": RawData(frame=frame, sha256="b" * 64)}


def limited(**data: Any) -> RunConfig:
    sampling = {**CONFIG["sampling"], "max_prompt_length": LIMIT}
    return config_with(sampling=sampling, data={**CONFIG["data"], **data})


def test_bug_042_prompts_over_the_limit_are_listed_before_anything_is_trained(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", limited())
    with pytest.raises(DataError, match=r"1 of 3 prompts of data\.train(.|\n)*max_prompt_length = 5(.|\n)*above"):
        bench.run(sources=of_lengths)
    assert bench.commits == []


def test_bug_042_or_dropped_by_rule_and_recorded(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", limited(overlong_prompts="drop"))
    bench.run(sources=of_lengths)
    (dropped,) = bench.events("prompts_dropped")
    assert (dropped["split"], dropped["prompt_ids"]) == ("train", ["above"])
    prompts = pl.concat([pl.read_parquet(path) for path in bench.paths("iterations/0*/prompts-*.parquet")])
    assert set(prompts["prompt_id"].to_list()) == {"below", "at"}
    assert prompts["prompt_ids"].list.len().max() == LIMIT, "kept whole, never cut"


def finishing(reason: str) -> type[ScriptedEngine]:
    class Finishing(ScriptedEngine):
        def generate(self, request: Any, progress: Any = None) -> None:
            super().generate(request, progress)
            frame = self._read(request.output).with_columns(pl.lit(reason).alias("finish_reason"))
            self._write(request.output, frame)

    return Finishing


@pytest.mark.parametrize(("rule", "same"), [("zero", False), ("score", True)])
def test_bug_018_what_a_cut_answer_earns_is_a_rule_with_a_name(tmp_path: Path, rule: str, *, same: bool) -> None:
    """The same tokens, once ended and once cut off: equal rewards only where the config says so."""
    outcome = {"kind": "answer_match", "truncated": rule}
    earned: list[list[float]] = []
    for reason in ("stop", "length"):
        bench = Bench(tmp_path / reason, config_with(iterations=1, reward={"outcome": outcome}))
        made = finishing(reason)
        bench.run(engine=lambda _, bench=bench, made=made: made(bench.disk))
        outcomes = pl.concat([pl.read_parquet(path) for path in bench.paths("iterations/00000/outcomes-*.parquet")])
        earned.append(outcomes["outcome_reward"].to_list())
        assert all(f'"truncated": "{rule}"' in version for version in outcomes["verifier_version"].to_list())
    assert sum(earned[0]) > 0
    assert (earned[0] == earned[1]) is same
    if not same:
        assert sum(earned[1]) == 0


def without_right_answers(config: RunConfig) -> dict[str, RawData]:
    found = sources(config)
    frame = found["train"].frame.with_columns(pl.lit("77").alias("reference_answer"))
    return {**found, "train": RawData(frame=frame, sha256="c" * 64)}


def test_bug_030_a_constant_reward_ends_in_a_reason_not_in_a_loop(tmp_path: Path) -> None:
    """There is no refill yet: an iteration without signal is counted, and so many in a row stop the run."""
    bench = Bench(tmp_path / "run", config_with(iterations=9, stop={"no_signal": 2}))
    reason = bench.run(sources=without_right_answers)
    assert reason is not None
    assert reason.startswith("no_signal")
    assert [commit.summary["zero_variance_groups"] for commit in bench.commits[1:]] == [1.0, 1.0]
    assert [commit.summary["all_wrong_ratio"] for commit in bench.commits[1:]] == [1.0, 1.0]
