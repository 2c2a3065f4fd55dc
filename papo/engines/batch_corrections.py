"""What looks at the whole batch before its divisors are counted: rejection of rows and tokens, normalised weights."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from papo.algorithm import Algorithm
from papo.engines.batching import aligned
from papo.errors import EngineError
from papo.losses import batch_normalized, corrections, within_kl_band

Lists = Sequence[Sequence[float]]
CPU = torch.device("cpu")


def kept_tokens(algorithm: Algorithm, columns: Mapping[str, Any]) -> tuple[list[list[bool]], list[list[float]] | None]:
    """The masks to train with, and the weight of each token where correction looks at the whole batch.

    `columns`: completion_mask, old_logprobs, sampler_logprobs and full_kl, one list a row.
    Raises EngineError where one that the settings need is missing.
    """
    masks: list[list[bool]] = columns["completion_mask"]
    if not masks or not (algorithm.needs.corrections or algorithm.kl_band):
        return masks, None
    mask = aligned(masks, device=CPU).bool()
    weights = None
    settings = algorithm.rollout_correction
    if algorithm.needs.corrections:
        old, sampler = (_table(columns, name) for name in ("old_logprobs", "sampler_logprobs"))
        # Not normalised yet: what the band rejects takes no part in the mean either.
        plain = replace(settings, rollout_is_batch_normalize=False)
        made = corrections(plain, old, sampler, mask, log_ratio_clamp=algorithm.log_ratio_clamp)
        mask, weights = made.kept, made.weights
    if algorithm.kl_band is not None:
        low, high = algorithm.kl_band
        rows = within_kl_band(_table(columns, "full_kl"), mask, low=low, high=high)
        mask = mask & rows[:, None]
    if weights is not None and settings.rollout_is_batch_normalize:
        weights = batch_normalized(settings, weights, mask)
    given = _cut(weights.tolist(), masks) if weights is not None and settings.weighs else None
    return _cut(mask.tolist(), masks), given


def _table(columns: Mapping[str, Any], name: str) -> torch.Tensor:
    lists = columns.get(name)
    if lists is None:
        raise EngineError(f"the algorithm looks at {name} of the whole batch, but no frame brings it: run logprobs.")
    return aligned(lists, device=CPU)


def _cut(table: list[list[Any]], like: Lists) -> list[list[Any]]:
    return [cells[: len(row)] for cells, row in zip(table, like, strict=True)]
