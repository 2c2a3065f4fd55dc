"""What looks at the whole batch before its divisors are counted: rejection of rows and tokens, normalised weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from papo.algorithm import Algorithm
from papo.engines.batching import aligned
from papo.errors import EngineError
from papo.losses import corrections, within_kl_band

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
    if algorithm.needs.corrections:
        old, sampler = (_table(columns, name) for name in ("old_logprobs", "sampler_logprobs"))
        made = corrections(algorithm.rollout_correction, old, sampler, mask, log_ratio_clamp=algorithm.log_ratio_clamp)
        mask = made.kept
        weights = _cut(made.weights.tolist(), masks) if algorithm.rollout_correction.weighs else None
    if algorithm.kl_band is not None:
        low, high = algorithm.kl_band
        rows = within_kl_band(_table(columns, "full_kl"), mask, low=low, high=high)
        mask = mask & rows[:, None]
    return _cut(mask.tolist(), masks), weights


def _table(columns: Mapping[str, Any], name: str) -> torch.Tensor:
    lists = columns.get(name)
    if lists is None:
        raise EngineError(f"the algorithm looks at {name} of the whole batch, but no frame brings it: run logprobs.")
    return aligned(lists, device=CPU)


def _cut(table: list[list[Any]], like: Lists) -> list[list[Any]]:
    return [cells[: len(row)] for cells, row in zip(table, like, strict=True)]
