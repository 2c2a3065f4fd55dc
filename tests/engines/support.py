"""A tiny run's worth of frames for the engine tests, and short ways to ask an engine for things."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from papo.algorithm import PAPO, Algorithm
from papo.chains import ChainTask
from papo.engines.host import EngineHost
from papo.engines.requests import Generate, Logprobs, RowAddress, SftPhase, SftSteps, Tokenize, TokenizePairs, Update
from papo.engines.settings import EngineSettings, OptimizerSettings, PromptFormat
from papo.seeding import seed_for

GROUPS, SAMPLES = 4, 4
WIDTH, LONGEST = 10, 24
OPTIMIZER = OptimizerSettings(learning_rate=1e-3)


def new_host(folder: Path, **settings: Any) -> EngineHost:
    host = EngineHost(EngineSettings(device="cpu", **settings), log=folder / "ranks.log", pid_file=folder / "pids.json")
    host.start()
    return host


def write_prompts(host: EngineHost, model: Path, folder: Path, groups: int = GROUPS) -> Path:
    problems = ChainTask().problems(3, groups)
    rows = pl.DataFrame({"prompt_id": [f"p{i}" for i in range(groups)], "prompt": [p.prompt for p in problems]})
    rows.write_parquet(folder / "rows.parquet")
    host.tokenize(
        Tokenize(
            model=str(model),
            rows=str(folder / "rows.parquet"),
            format=PromptFormat(),
            output=str(folder / "tokenized.parquet"),
        )
    )
    tokenized = pl.read_parquet(folder / "tokenized.parquet")
    path = folder / "prompts.parquet"
    tokenized.with_columns(group_id=pl.int_range(groups, dtype=pl.Int32)).write_parquet(path)
    return path


def addresses(groups: int = GROUPS, samples: int = SAMPLES, seed: int = 0) -> tuple[RowAddress, ...]:
    return tuple(
        RowAddress(
            group_id=group,
            sample_index=sample,
            seed=seed_for(seed, stage="generate", group_id=group, sample_index=sample),
        )
        for group in range(groups)
        for sample in range(samples)
    )


def sample(host: EngineHost, prompts: Path, output: Path, **changes: Any) -> pl.DataFrame:
    request: dict[str, Any] = {
        "prompts": str(prompts),
        "rows": addresses(),
        "batch_rows": GROUPS * SAMPLES,
        "width": WIDTH,
        "max_completion_length": LONGEST,
        "temperature": 1.0,
        "policy_version": 0,
        "sampling_sha256": "settings",
        "output": str(output),
    }
    progress = changes.pop("progress", None)
    host.generate(Generate(**(request | changes)), progress)
    return pl.read_parquet(output)


def write_advantages(
    rollouts: pl.DataFrame,
    path: Path,
    values: Sequence[float | None] | None = None,
    returns: Sequence[Sequence[float]] | None = None,
) -> Path:
    credit = [1.0 if index % 2 else -0.5 for index in range(rollouts.height)] if values is None else values
    rollouts.select("group_id", "sample_index").with_columns(
        pl.Series("advantage", credit, dtype=pl.Float64),
        pl.lit(None, dtype=pl.List(pl.Float64)).alias("token_advantages"),
        pl.Series("returns", returns or [None] * rollouts.height, dtype=pl.List(pl.Float64)),
    ).write_parquet(path)
    return path


def write_logprobs(host: EngineHost, prompts: Path, rollouts: Path, output: Path, **changes: Any) -> pl.DataFrame:
    request: dict[str, Any] = {
        "state": "policy",
        "column": "old_logprobs",
        "prompts": str(prompts),
        "rollouts": str(rollouts),
        "temperature": 1.0,
        "output": str(output),
    }
    host.logprobs(Logprobs(**(request | changes)))
    return pl.read_parquet(output)


def update_request(
    prompts: Path,
    rollouts: Path,
    advantages: Path,
    *,
    algorithm: Algorithm = PAPO,
    logprobs: tuple[Path, ...] = (),
    **changes: Any,
) -> Update:
    request: dict[str, Any] = {
        "prompts": (str(prompts),),
        "rollouts": (str(rollouts),),
        "advantages": str(advantages),
        "logprobs": tuple(map(str, logprobs)),
        "algorithm": algorithm,
        "optimizer": OPTIMIZER,
        "temperature": 1.0,
        "seed": 5,
    }
    return Update(**(request | changes))


def write_pairs(host: EngineHost, model: Path, folder: Path, count: int = 40) -> Path:
    rows = ChainTask().sft_rows(1, count)
    pl.DataFrame(
        {
            "prompt": [prompt for prompt, _ in rows],
            "completion": [completion for _, completion in rows],
            "style": [
                "concise" if "think>\n" not in completion and "=" in completion else "guess" for _, completion in rows
            ],
        }
    ).write_parquet(folder / "pairs.parquet")
    path = folder / "sft.parquet"
    host.tokenize_pairs(
        TokenizePairs(model=str(model), rows=str(folder / "pairs.parquet"), format=PromptFormat(), output=str(path))
    )
    return path


def sft_request(rows: Path, *, first: int, count: int, **changes: Any) -> SftSteps:
    request: dict[str, Any] = {
        "rows": str(rows),
        "phases": (SftPhase(share=0.5, styles=("concise",)), SftPhase(share=0.5)),
        "first": first,
        "count": count,
        "total": 6,
        "batch_size": 8,
        "optimizer": OptimizerSettings(learning_rate=5e-3, schedule="cosine", warmup_steps=2),
        "seed": 3,
    }
    return SftSteps(**(request | changes))
