"""Log-probs of stored completions under a model that is not trained on the way."""

from collections.abc import Callable
from typing import Any

import polars as pl
import torch

from papo.engines.batching import Example, plan, position_limits, token_batch
from papo.engines.forward import completion_kl, score_completions
from papo.engines.requests import Logprobs
from papo.engines.rows import rollout_rows


def score_rollouts(
    module: Any, request: Logprobs, *, micro_batch_size: int, tick: Callable[[int, int], None], policy: Any = None
) -> pl.DataFrame:
    """group_id, sample_index and the columns that `request` asks for, in the order of the rollouts.

    Rows are computed in the widths of the update's micro-batches, so that the ratio of unchanged weights is 1.
    `policy`: the model whose KL to `module` is computed with full_kl.
    """
    rollouts = pl.read_parquet(request.rollouts, columns=["group_id", "sample_index"])
    frame = rollout_rows([request.prompts], [request.rollouts], ["token_ids"])
    examples = [Example(*pair) for pair in frame.select("prompt_ids", "token_ids").iter_rows()]
    lengths, limits = [row.length for row in examples], position_limits(module)
    (batches,) = plan(lengths, micro_batch_size=micro_batch_size, ranks=1, limits=limits)
    device = next(module.parameters()).device
    names = [request.column, *(["entropies"] if request.entropies else []), *(["full_kl"] if request.full_kl else [])]
    found: dict[str, list[list[float]]] = {name: [[] for _ in examples] for name in names}
    for number, batch in enumerate(batches):
        tokens = token_batch([examples[row] for row in batch.rows], width=batch.width, device=device)
        with torch.no_grad():
            scores = score_completions(module, tokens, temperature=request.temperature, entropies=request.entropies)
            tables = {request.column: scores.logprobs, "entropies": scores.entropies}
            if request.full_kl:
                tables["full_kl"] = completion_kl(policy, module, tokens, temperature=request.temperature)
        for name in names:
            table = tables[name]
            assert table is not None
            for row, cells in zip(batch.rows, table.tolist(), strict=True):
                found[name][row] = cells[: len(examples[row].completion)]
        tick(number + 1, len(batches))
    columns = [pl.Series(name, lists, dtype=pl.List(pl.Float32)) for name, lists in found.items()]
    scored = frame.select("group_id", "sample_index", *columns)
    return rollouts.join(scored, on=["group_id", "sample_index"], how="left", maintain_order="left")
