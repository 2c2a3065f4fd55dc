"""Log-probs of stored completions under a model that is not trained on the way."""

from collections.abc import Callable
from typing import Any

import polars as pl
import torch

from papo.engines.batching import Example, plan, token_batch
from papo.engines.forward import score_completions
from papo.engines.protocol import Logprobs
from papo.engines.rows import rollout_rows


def score_rollouts(
    module: Any, request: Logprobs, *, micro_batch_size: int, tick: Callable[[int, int], None]
) -> pl.DataFrame:
    """group_id, sample_index and the column that `request` names, in the order of the rollouts.

    Rows are computed in the widths of the update's micro-batches, so that the ratio of unchanged weights is 1.
    """
    rollouts = pl.read_parquet(request.rollouts, columns=["group_id", "sample_index"])
    frame = rollout_rows(request.prompts, [request.rollouts], ["token_ids"])
    examples = [Example(*pair) for pair in frame.select("prompt_ids", "token_ids").iter_rows()]
    (batches,) = plan([row.length for row in examples], micro_batch_size=micro_batch_size, ranks=1)
    device = next(module.parameters()).device
    found: list[list[float]] = [[] for _ in examples]
    for number, batch in enumerate(batches):
        tokens = token_batch([examples[row] for row in batch.rows], width=batch.width, device=device)
        with torch.no_grad():
            table = score_completions(module, tokens, temperature=request.temperature).logprobs.tolist()
        for row, cells in zip(batch.rows, table, strict=True):
            found[row] = cells[: len(examples[row].completion)]
        tick(number + 1, len(batches))
    scores = frame.select("group_id", "sample_index", pl.Series(request.column, found, dtype=pl.List(pl.Float32)))
    return rollouts.join(scores, on=["group_id", "sample_index"], how="left", maintain_order="left")
