"""The implicit PRM's optimizer steps: cross-entropy of its completion rewards with the outcomes (PRIME)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

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
    """One pass over the rows that have a label, in mini-batches. A step that is not finite is not applied, and one
    whose rows have no training token is none: a step of zero gradient would move the weights by old momentum."""
    rows = _rows(request)
    planned = list(_mini_batches(request, rows.height))
    trainer = _Trainer(learner, request, rows, settings, rank)
    steps: list[_Step] = []
    for number, chosen in enumerate(planned):
        if trainer.has_signal(chosen):
            steps.append(trainer.step(chosen))
        tick(number + 1, len(planned))
    measured = [step for step in steps if step.applied] or steps
    count = max(len(measured), 1)
    return PrmStats(
        loss=sum(step.loss for step in measured) / count,
        grad_norm=sum(step.norm for step in measured) / count,
        rows=rows.height,
        optimizer_steps=sum(step.applied for step in steps),
        skipped_steps=sum(not step.applied for step in steps),
        steps_without_signal=len(planned) - len(steps),
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """What one optimizer step gave, over all ranks."""

    loss: float
    norm: float
    applied: bool


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

    def has_signal(self, chosen: Sequence[int]) -> bool:
        """Whether any of the rows, all of which have a label, has a training token."""
        return self._with_tokens(chosen) > 0

    def step(self, chosen: Sequence[int]) -> _Step:
        loss = within_memory(self._learner, lambda size: self._add_up(chosen, size))
        return _Step(loss, *self._learner.step(self._request.optimizer, finite=bool(np.isfinite(loss))))

    def _with_tokens(self, chosen: Sequence[int]) -> int:
        """Rows that have a training token: those that the mean is taken over."""
        return sum(any(self._masks[row]) for row in chosen)

    def _add_up(self, chosen: Sequence[int], size: int) -> float:
        lengths = [self._examples[row].length for row in chosen]
        limits = self._learner.position_limits
        batches = plan(lengths, micro_batch_size=size, ranks=self._settings.ranks, limits=limits)[self._rank]
        divisor = self._with_tokens(chosen)
        parts: list[dict[str, float]] = []
        for number, batch in enumerate(batches):
            loss = self._loss([chosen[index] for index in batch.rows], batch) * float(batch.counted) / divisor
            self._learner.backward(loss, last=number + 1 == len(batches))
            parts.append({"loss": float(loss.detach())})
        return distributed.total(merge_sums(parts), self._learner.device)["loss"]

    def _loss(self, members: Sequence[int], batch: MicroBatch) -> torch.Tensor:
        """The sum over the rows that have a training token."""
        device = self._learner.device
        tokens = token_batch([self._examples[row] for row in members], width=batch.width, device=device)
        scores = score_completions(self._learner.engine, tokens, temperature=self._request.temperature)
        mask = aligned([self._masks[row] for row in members], device=device).bool()
        rewards = completion_rewards(
            scores.logprobs,
            aligned([self._reference[row] for row in members], device=device),
            mask,
            beta=self._request.implicit_prm.beta_train,
        )
        labels = torch.tensor([self._labels[row] for row in members], dtype=torch.float32, device=device)
        return ce_losses(rewards, labels).masked_fill(~mask.any(-1), 0.0).sum()
