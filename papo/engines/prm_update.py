"""The implicit PRM's optimizer steps: cross-entropy of its completion rewards with the outcomes (PRIME)."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import polars as pl
import torch

from papo.engines import distributed
from papo.engines.batching import Example, MicroBatch, aligned, plan, token_batch
from papo.engines.forward import score_completions
from papo.engines.learner import Learner
from papo.engines.memory import within_memory
from papo.engines.requests import TrainPrm
from papo.engines.rows import KEYS, rollout_rows, with_column
from papo.engines.settings import EngineSettings
from papo.errors import EngineError
from papo.losses.implicit_prm import ce_losses, completion_rewards
from papo.losses.objective import merge_sums
from papo.metrics import PrmStats
from papo.seeding import epoch_order


def train_prm(
    learner: Learner, request: TrainPrm, *, settings: EngineSettings, rank: int, tick: Callable[[int, int], None]
) -> PrmStats:
    """One pass over the rows that have a label, in mini-batches. A step that is not finite is not applied."""
    rows = _rows(request)
    planned = list(_mini_batches(request, rows.height))
    trainer = _Trainer(learner, request, rows, settings, rank)
    steps: list[tuple[dict[str, float], float, bool]] = []
    for number, chosen in enumerate(planned):
        steps.append(trainer.step(chosen))
        tick(number + 1, len(planned))
    measured = [step for step in steps if step[2]] or steps
    count = max(len(measured), 1)
    return PrmStats(
        loss=sum(sums["loss"] for sums, _, _ in measured) / count,
        grad_norm=sum(norm for _, norm, _ in measured) / count,
        rows=rows.height,
        optimizer_steps=sum(applied for _, _, applied in steps),
        skipped_steps=sum(not applied for _, _, applied in steps),
    )


def _rows(request: TrainPrm) -> pl.DataFrame:
    frame = rollout_rows(request.prompts, request.rollouts, ["token_ids", "completion_mask"])
    frame = frame.filter(pl.col("group_id").is_in(request.groups))
    labels = pl.concat([pl.read_parquet(path).select(*KEYS, "accuracy_reward") for path in request.outcomes])
    frame = frame.join(labels, on=KEYS, how="left", validate="1:1", maintain_order="left")
    frame = with_column(frame, request.reference, request.logprobs)
    if request.reference not in frame.columns:
        raise EngineError(f"an implicit PRM is trained against {request.reference}, but no frame brings it.")
    return frame.filter(pl.col("accuracy_reward").is_not_null())


def _mini_batches(request: TrainPrm, rows: int) -> Iterator[list[int]]:
    size = request.mini_batch_size or max(rows, 1)
    order = epoch_order(request.seed, epoch=0, size=rows, stage="train_prm")
    for start in range(0, rows, size):
        yield sorted(order[start : start + size].tolist())


class _Trainer:
    def __init__(
        self, learner: Learner, request: TrainPrm, rows: pl.DataFrame, settings: EngineSettings, rank: int
    ) -> None:
        self._learner, self._request, self._settings, self._rank = learner, request, settings, rank
        columns = rows.to_dict(as_series=False)
        self._examples = [Example(*pair) for pair in zip(columns["prompt_ids"], columns["token_ids"], strict=True)]
        self._masks: list[list[bool]] = columns["completion_mask"]
        self._reference: list[list[float]] = columns[request.reference]
        self._labels: list[float] = columns["accuracy_reward"]

    def step(self, chosen: Sequence[int]) -> tuple[dict[str, float], float, bool]:
        sums = within_memory(self._learner, lambda size: self._add_up(chosen, size))
        return sums, *self._learner.step(self._request.optimizer, finite=bool(np.isfinite(sums["loss"])))

    def _add_up(self, chosen: Sequence[int], size: int) -> dict[str, float]:
        lengths = [self._examples[row].length for row in chosen]
        limits = self._learner.position_limits
        batches = plan(lengths, micro_batch_size=size, ranks=self._settings.ranks, limits=limits)[self._rank]
        parts: list[dict[str, float]] = []
        for number, batch in enumerate(batches):
            loss = self._loss([chosen[index] for index in batch.rows], batch) * float(batch.counted) / len(chosen)
            self._learner.backward(loss, last=number + 1 == len(batches))
            parts.append({"loss": float(loss.detach())})
        return distributed.total(merge_sums(parts), self._learner.device)

    def _loss(self, members: Sequence[int], batch: MicroBatch) -> torch.Tensor:
        """The sum over the rows."""
        device = self._learner.device
        tokens = token_batch([self._examples[row] for row in members], width=batch.width, device=device)
        scores = score_completions(self._learner.engine, tokens, temperature=self._request.temperature)
        rewards = completion_rewards(
            scores.logprobs,
            aligned([self._reference[row] for row in members], device=device),
            aligned([self._masks[row] for row in members], device=device).bool(),
            beta=self._request.implicit_prm.beta_train,
        )
        labels = torch.tensor([self._labels[row] for row in members], dtype=torch.float32, device=device)
        return ce_losses(rewards, labels).sum()
