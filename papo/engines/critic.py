"""The critic: a model's backbone with one number a position, and the values of completions under it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from papo.engines.batching import Example, TokenBatch, plan, position_limits, token_batch
from papo.engines.models import LoadedModel
from papo.engines.requests import Values
from papo.engines.rows import rollout_rows
from papo.errors import EngineError


class ValueModel(nn.Module):
    """Values of every position of a batch: the backbone's last hidden states through one linear head.

    The head starts at zero, so that an untrained critic expects nothing and changes no advantage of its own accord.
    """

    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(backbone.config.hidden_size, 1).to(backbone.dtype)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, input_ids: Tensor) -> Tensor:
        """(rows, width) float32."""
        hidden = self.backbone(input_ids=input_ids, use_cache=False).last_hidden_state
        return self.head(hidden).squeeze(-1).float()


def load_critic(folder: Path, like: LoadedModel, *, weights: bool, trust_remote_code: bool) -> LoadedModel:
    """A critic over the backbone of a model folder, in the precision of `like`, with its tokenizer.

    `weights`: False where the parameters come from a checkpoint next. Raises EngineError where the folder lacks some.
    """
    dtype = next(like.module.parameters()).dtype
    if weights:
        loaded: Any = AutoModel.from_pretrained(
            folder,
            dtype=dtype,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=trust_remote_code,
            output_loading_info=True,
        )
        backbone, report = loaded
        if report["missing_keys"]:
            named = ", ".join(sorted(report["missing_keys"])[:5])
            raise EngineError(f"{folder} lacks weights of the critic's backbone: {named}.")
    else:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=trust_remote_code)
        backbone = AutoModel.from_config(config, dtype=dtype, trust_remote_code=trust_remote_code)
    module = ValueModel(backbone)
    module.eval()
    return replace(like, module=module)


def completion_values(model: Any, batch: TokenBatch) -> tuple[Tensor, Tensor]:
    """(rows, longest completion) value before each token, and (rows,) after the last one, float32."""
    values = model(input_ids=batch.input_ids)
    columns = torch.arange(int(batch.lengths.max()), device=values.device)
    # What stands at a position has seen its token: the value before a token is read one position earlier.
    index = (batch.first[:, None] - 1 + columns).clamp(max=values.shape[1] - 1)
    final = values.gather(1, (batch.first + batch.lengths - 1)[:, None]).squeeze(1)
    return values.gather(1, index), final


def value_rollouts(
    module: Any, request: Values, *, micro_batch_size: int, tick: Callable[[int, int], None]
) -> pl.DataFrame:
    """group_id, sample_index, token_values and final_value, in the order of the rollouts."""
    rollouts = pl.read_parquet(request.rollouts, columns=["group_id", "sample_index"])
    frame = rollout_rows([request.prompts], [request.rollouts], ["token_ids"])
    examples = [Example(*pair) for pair in frame.select("prompt_ids", "token_ids").iter_rows()]
    lengths, limits = [row.length for row in examples], position_limits(module)
    (batches,) = plan(lengths, micro_batch_size=micro_batch_size, ranks=1, limits=limits)
    device = next(module.parameters()).device
    tokens: list[list[float]] = [[] for _ in examples]
    finals = [0.0] * len(examples)
    for number, batch in enumerate(batches):
        rows = token_batch([examples[row] for row in batch.rows], width=batch.width, device=device)
        with torch.no_grad():
            before, after = completion_values(module, rows)
        for row, cells, final in zip(batch.rows, before.tolist(), after.tolist(), strict=True):
            tokens[row], finals[row] = cells[: len(examples[row].completion)], final
        tick(number + 1, len(batches))
    made = frame.select(
        "group_id",
        "sample_index",
        pl.Series("token_values", tokens, dtype=pl.List(pl.Float32)),
        pl.Series("final_value", finals, dtype=pl.Float64),
    )
    return rollouts.join(made, on=["group_id", "sample_index"], how="left", maintain_order="left")
