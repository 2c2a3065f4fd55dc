"""What `papo try` sees beside a real iteration: prompts as the model gets them, the memory of a full-length update."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from papo.engines.requests import Tokenize, Update
from schemas.frames import Rollouts, columns_of
from schemas.records import FrameRef
from tasks.run import MODEL, SCRATCH, Run
from tasks.store import encode


@dataclass(frozen=True)
class Preview:
    """What the policy is given and where it may end."""

    shown: str
    """The first prompt's ids as text, special tokens written out."""
    ids: int
    """How many they are."""
    begin: str
    """The first of them, by name."""
    ends: tuple[str, ...]
    """End tokens, by name."""


def preview(run: Run) -> Preview:
    """The first prompt of the iteration at hand, made again by the engine and read back from its ids."""
    config, rows = run.configs(0), run.sources("train").frame
    sampled = run.store.load(next(entry.frame_ref for entry in run.head.entries if entry.stage == "sample"))
    path = f"{SCRATCH}/try-rows.parquet"
    run.disk.write(path, encode(rows.filter(pl.col("prompt_id") == sampled["prompt_id"][0])))
    shown = run.staged(
        "try-tokens",
        lambda output: run.engine.tokenize(
            Tokenize(
                model=run.disk.local(MODEL),
                rows=run.disk.local(path),
                format=config.data.prompt,
                output=output,
                preview=True,
            )
        ),
    )
    ids: list[int] = shown["prompt_ids"][0].to_list()
    begin, *ends = token_names(Path(run.disk.local(MODEL)), [ids[0], *run.engine.end_ids()])
    return Preview(shown=shown["prompt_shown"][0], ids=len(ids), begin=begin, ends=tuple(ends))


def token_names(folder: Path, ids: Sequence[int]) -> list[str]:
    """`<|im_end|> (2)` for ids that the folder's tokenizer.json names apart from its vocabulary, else `id 2`."""
    declared: list[dict[str, Any]] = []
    with suppress(OSError, ValueError, KeyError):
        declared = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
    names = {token["id"]: token["content"] for token in declared}
    return [f"{names[index]} ({index})" if index in names else f"id {index}" for index in ids]


def longest_update(run: Run, rollouts: list[FrameRef]) -> None:
    """One optimizer step, at learning rate 0, on a micro-batch of the longest prompt and completions at the limit.

    The policy in memory is of no use afterwards: its moments have seen made-up rows.
    """
    config = run.configs(0)
    size, limit = config.engine.micro_batch_size, config.sampling.max_completion_length
    data = run.store.load(run.artifact("prepare", 0))
    longest = data.sort(pl.col("prompt_ids").list.len(), descending=True).head(1)
    token = next((ids[0] for ref in rollouts for ids in run.store.load(ref)["token_ids"] if len(ids)), 0)
    rows = [_row(index, longest["prompt_id"][0], [int(token)] * limit) for index in range(size)]
    paths = {
        "prompts": longest.select(
            pl.lit(0, dtype=pl.Int32).alias("group_id"),
            "prompt_id",
            "prompt",
            "question",
            "reference_answer",
            "prompt_ids",
        ),
        "rollouts": pl.DataFrame(rows, schema=columns_of(Rollouts)),
        "advantages": _advantages(size),
    }
    for name, frame in paths.items():
        run.disk.write(f"{SCRATCH}/try-{name}.parquet", encode(frame))
    local = {name: run.disk.local(f"{SCRATCH}/try-{name}.parquet") for name in paths}
    run.engine.update(
        Update(
            prompts=(local["prompts"],),
            rollouts=(local["rollouts"],),
            advantages=local["advantages"],
            logprobs=(),
            algorithm=replace(config.algorithm, ppo_epochs=1, ppo_mini_batch_size=None, use_kl_loss=False),
            optimizer=replace(config.optimizer, learning_rate=0.0),
            temperature=config.sampling.temperature,
            seed=0,
            off_policy=True,
        ),
        run.progress,
    )


def _row(index: int, prompt_id: str, ids: list[int]) -> dict[str, Any]:
    return {
        "group_id": 0, "sample_index": index, "prompt_id": prompt_id, "completion": "", "token_ids": ids,
        "completion_mask": [True] * len(ids), "sampler_logprobs": [-1.0] * len(ids), "token_ends": [0] * len(ids),
        "finish_reason": "length", "policy_version": 0, "policy_sha256": "", "row_seed": 0, "sampling_sha256": "",
    }  # fmt: skip


def _advantages(size: int) -> pl.DataFrame:
    signs = [1.0 if index % 2 else -1.0 for index in range(size)]
    return pl.DataFrame(
        {
            "group_id": pl.Series([0] * size, dtype=pl.Int32),
            "sample_index": pl.Series(range(size), dtype=pl.Int32),
            "outcome_advantage": signs,
            "process_advantage": [0.0] * size,
            "advantage": signs,
            "token_advantages": pl.Series([None] * size, dtype=pl.List(pl.Float64)),
            "returns": pl.Series([None] * size, dtype=pl.List(pl.Float64)),
            "process_active": [False] * size,
            "zero_reason": pl.Series([None] * size, dtype=pl.String),
        }
    )
