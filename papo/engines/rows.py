"""Stored rollouts with everything that belongs to them, as the update reads them: checked, sorted by key."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from papo.engines.batching import Example
from papo.engines.protocol import Update
from papo.errors import DataError, EngineError

Counts = np.ndarray[tuple[int], np.dtype[np.int64]]
KEYS = ["group_id", "sample_index"]
PER_TOKEN = ("completion_mask", "sampler_logprobs", "token_advantages", "old_logprobs", "ref_logprobs")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingRows:
    """The rows that take part, in the order of their keys. Lists have one entry a completion token."""

    examples: list[Example]
    masks: list[list[bool]]
    advantages: list[list[float]]
    sampler_logprobs: list[list[float]]
    old_logprobs: list[list[float]] | None
    ref_logprobs: list[list[float]] | None

    training_tokens: Counts
    """Tokens of each row under its mask."""
    has_signal: bool
    """Whether any training token has an advantage other than 0."""


def rollout_rows(prompts: str, rollouts: Sequence[str], columns: Sequence[str]) -> pl.DataFrame:
    """Rollouts joined with their prompt_ids, sorted by key: the order of files and rows changes nothing."""
    ids = pl.read_parquet(prompts, columns=["group_id", "prompt_ids"])
    frame = pl.concat([pl.read_parquet(path, columns=[*KEYS, *columns]) for path in rollouts])
    joined = frame.join(ids, on="group_id", how="left", validate="m:1").sort(KEYS)
    if joined["prompt_ids"].null_count():
        lost = joined.filter(pl.col("prompt_ids").is_null())["group_id"][0]
        raise DataError(f"rollouts of group_id {lost} have no prompt in {prompts}.")
    if joined.select(KEYS).is_duplicated().any():
        raise DataError(f"a rollout is there twice among {', '.join(rollouts)}: each key must be there once.")
    return joined


def training_rows(request: Update) -> TrainingRows:
    """The rows of an update. Unscorable rows (null advantage) and, if asked, truncated ones take no part.

    Raises DataError when a list does not have one entry a token: such a row is never padded (BUG-033).
    """
    columns = ["token_ids", "completion_mask", "sampler_logprobs", "finish_reason"]
    frame = rollout_rows(request.prompts, request.rollouts, columns)
    credit = pl.read_parquet(request.advantages, columns=[*KEYS, "advantage", "token_advantages"])
    frame = frame.join(credit, on=KEYS, how="left", validate="1:1", maintain_order="left")
    for name in ("old_logprobs", "ref_logprobs"):
        # A frame has both columns; the one that the algorithm does not need is null throughout.
        frames = (pl.read_parquet(path) for path in request.logprobs)
        parts = [part for part in frames if name in part.columns and part[name].null_count() < part.height]
        if parts:
            scores = pl.concat([part.select(*KEYS, name) for part in parts])
            frame = frame.join(scores, on=KEYS, how="left", validate="1:1", maintain_order="left")
    takes_part = pl.col("advantage").is_not_null()
    if request.algorithm.mask_truncated_completions:
        takes_part &= pl.col("finish_reason") != "length"
    frame = frame.filter(takes_part)
    _check(frame)
    return _listed(frame, request)


def _listed(frame: pl.DataFrame, request: Update) -> TrainingRows:
    columns = frame.to_dict(as_series=False)
    advantages = [
        [whole] * len(ids) if by_token is None else by_token
        for whole, by_token, ids in zip(
            columns["advantage"], columns["token_advantages"], columns["token_ids"], strict=True
        )
    ]
    bypass = request.algorithm.rollout_correction.bypass_mode
    old = columns["sampler_logprobs"] if request.off_policy or bypass else columns.get("old_logprobs")
    if request.algorithm.use_kl_loss and "ref_logprobs" not in columns:
        raise EngineError("the algorithm has a KL loss but no frame brings ref_logprobs: run the reference stage.")
    masks = columns["completion_mask"]
    return TrainingRows(
        examples=[Example(*pair) for pair in zip(columns["prompt_ids"], columns["token_ids"], strict=True)],
        masks=masks,
        advantages=advantages,
        sampler_logprobs=columns["sampler_logprobs"],
        old_logprobs=old,
        ref_logprobs=columns.get("ref_logprobs"),
        training_tokens=np.array([sum(mask) for mask in masks], dtype=np.int64),
        has_signal=any(
            credit != 0.0
            for row, mask in zip(advantages, masks, strict=True)
            for credit, counts in zip(row, mask, strict=True)
            if counts
        ),
    )


def _check(frame: pl.DataFrame) -> None:
    tokens = pl.col("token_ids").list.len()
    for name in PER_TOKEN:
        if name not in frame.columns:
            continue
        wrong = pl.col(name).list.len() != tokens
        # Only an estimator that has no token advantages may leave the list out.
        wrong = wrong.fill_null(False) if name == "token_advantages" else wrong.fill_null(True)
        faulty = frame.filter(wrong)
        if faulty.height:
            group, sample = faulty.select(KEYS).row(0)
            raise DataError(
                f"{name} of rollout (group_id {group}, sample_index {sample}) has not one entry a token, nor have"
                f" {faulty.height - 1} others. They are never padded: make the frame again."
            )
