"""Stored rollouts with everything that belongs to them, as the update reads them: checked, sorted by key."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from papo.engines.batch_corrections import kept_tokens
from papo.engines.batching import Example
from papo.engines.requests import Update
from papo.errors import DataError, EngineError

Counts = np.ndarray[tuple[int], np.dtype[np.int64]]
KEYS = ["group_id", "sample_index"]
PER_TOKEN = (
    "completion_mask", "sampler_logprobs", "token_advantages", "returns", "old_logprobs", "ref_logprobs", "full_kl",
    "token_values",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingRows:
    """The rows that take part, in the order of their keys. Lists have one entry a completion token."""

    examples: list[Example]
    masks: list[list[bool]]
    advantages: list[list[float]]
    sampler_logprobs: list[list[float]]
    old_logprobs: list[list[float]] | None
    ref_logprobs: list[list[float]] | None
    old_values: list[list[float]] | None
    """The critic's before the update."""
    returns: list[list[float]] | None
    """What the critic is trained towards."""
    correction_weights: list[list[float]] | None
    """Where sampler/trainer correction looks at the whole batch."""

    training_tokens: Counts
    """Tokens of each row under its mask."""
    with_advantage: Counts
    """Those of them whose advantage is not 0."""
    rejected_ratio: float | None
    """Share of training tokens that a rule on the whole batch rejected; None without one."""


def rollout_rows(prompts: Sequence[str], rollouts: Sequence[str], columns: Sequence[str]) -> pl.DataFrame:
    """Rollouts joined with their prompt_ids, sorted by key: the order of files and rows changes nothing."""
    ids = pl.concat([pl.read_parquet(path, columns=["group_id", "prompt_ids"]) for path in prompts])
    frame = pl.concat([pl.read_parquet(path, columns=[*KEYS, *columns]) for path in rollouts])
    joined = frame.join(ids, on="group_id", how="left", validate="m:1").sort(KEYS)
    if joined["prompt_ids"].null_count():
        lost = joined.filter(pl.col("prompt_ids").is_null())["group_id"][0]
        raise DataError(f"rollouts of group_id {lost} have no prompt in {', '.join(prompts)}.")
    if joined.select(KEYS).is_duplicated().any():
        raise DataError(f"a rollout is there twice among {', '.join(rollouts)}: each key must be there once.")
    return joined


def training_rows(request: Update) -> TrainingRows:
    """The rows of an update. Unscorable rows (null advantage) and, if asked, truncated ones take no part.

    Raises DataError when a list does not have one entry a token: such a row is never padded (BUG-033).
    """
    columns = ["token_ids", "completion_mask", "sampler_logprobs", "finish_reason"]
    frame = rollout_rows(request.prompts, request.rollouts, columns)
    credit = pl.read_parquet(request.advantages, columns=[*KEYS, "advantage", "token_advantages", "returns"])
    frame = frame.join(credit, on=KEYS, how="left", validate="1:1", maintain_order="left")
    for name in ("old_logprobs", "ref_logprobs", "full_kl"):
        frame = with_column(frame, name, request.logprobs)
    frame = with_column(frame, "token_values", request.critic.values if request.critic else ())
    takes_part = pl.col("advantage").is_not_null()
    if request.algorithm.mask_truncated_completions:
        takes_part &= pl.col("finish_reason") != "length"
    frame = frame.filter(takes_part)
    _check(frame)
    return _listed(frame, request)


def with_column(frame: pl.DataFrame, name: str, paths: Sequence[str]) -> pl.DataFrame:
    """`frame` with a further column by key; without it where no file has it, or it is null throughout."""
    frames = (pl.read_parquet(path) for path in paths)
    parts = [part for part in frames if name in part.columns and part[name].null_count() < part.height]
    if not parts:
        return frame
    found = pl.concat([part.select(*KEYS, name) for part in parts])
    return frame.join(found, on=KEYS, how="left", validate="1:1", maintain_order="left")


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
    masks, weights = kept_tokens(request.algorithm, columns | {"old_logprobs": old})
    if request.critic is not None and "token_values" not in columns:
        raise EngineError("there is a critic but no frame brings token_values: run the values stage.")
    return TrainingRows(
        examples=[Example(*pair) for pair in zip(columns["prompt_ids"], columns["token_ids"], strict=True)],
        masks=masks,
        advantages=advantages,
        sampler_logprobs=columns["sampler_logprobs"],
        old_logprobs=old,
        ref_logprobs=columns.get("ref_logprobs"),
        old_values=columns.get("token_values"),
        returns=columns["returns"] if request.critic else None,
        correction_weights=weights,
        rejected_ratio=_rejected(request, columns["completion_mask"], masks),
        training_tokens=np.array([sum(mask) for mask in masks], dtype=np.int64),
        with_advantage=np.array(
            [
                sum(credit != 0.0 for credit, counts in zip(row, mask, strict=True) if counts)
                for row, mask in zip(advantages, masks, strict=True)
            ],
            dtype=np.int64,
        ),
    )


def _rejected(request: Update, before: list[list[bool]], after: list[list[bool]]) -> float | None:
    if request.algorithm.kl_band is None and not request.algorithm.needs.corrections:
        return None
    tokens = sum(map(sum, before))
    return 1 - sum(map(sum, after)) / tokens if tokens else None


def _check(frame: pl.DataFrame) -> None:
    tokens = pl.col("token_ids").list.len()
    for name in PER_TOKEN:
        if name not in frame.columns:
            continue
        wrong = pl.col(name).list.len() != tokens
        # Only an estimator that has no token advantages or returns may leave those lists out.
        wrong = wrong.fill_null(name not in ("token_advantages", "returns"))
        faulty = frame.filter(wrong)
        if faulty.height:
            group, sample = faulty.select(KEYS).row(0)
            raise DataError(
                f"{name} of rollout (group_id {group}, sample_index {sample}) has not one entry a token, nor have"
                f" {faulty.height - 1} others. They are never padded: make the frame again."
            )
