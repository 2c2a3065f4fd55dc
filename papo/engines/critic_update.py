"""The critic's optimizer steps, on the same mini-batches and micro-batches as the policy's."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from papo.engines import distributed
from papo.engines.batching import MicroBatch, aligned, plan, token_batch
from papo.engines.critic import completion_values
from papo.engines.learner import Learner
from papo.engines.memory import within_memory
from papo.engines.requests import CriticUpdate, Update
from papo.engines.rows import TrainingRows
from papo.engines.settings import EngineSettings
from papo.losses import ValueObjective, explained_variance, row_weights, value_objective
from papo.losses.objective import merge_sums

Weights = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class CriticStep:
    """What one optimizer step of the critic gave, over all ranks."""

    sums: dict[str, float]
    norm: float
    applied: bool


@dataclass(frozen=True, slots=True)
class CriticTraining:
    """The critic's part of an update."""

    learner: Learner
    request: Update
    rows: TrainingRows
    settings: EngineSettings
    rank: int

    def step(self, chosen: Sequence[int]) -> CriticStep | None:
        """One step on the rows `chosen`. The loss is a mean over training tokens, whatever the policy's aggregation.

        None where no row has a training token, and so a return to be trained towards: that is no step.
        """
        update = self.request.critic
        assert update is not None
        if not self._has_target(chosen):
            return None
        weights = row_weights(self.rows.training_tokens[list(chosen)], mode="token-mean")
        sums = within_memory(self.learner, lambda size: self._add_up(chosen, weights, size))
        finite = all(np.isfinite(number) for number in sums.values())
        return CriticStep(sums, *self.learner.step(update.optimizer, finite=finite))

    def _has_target(self, chosen: Sequence[int]) -> bool:
        """Whether the loss of these rows can have a gradient: a training token, and a weight."""
        return bool(self.rows.training_tokens[list(chosen)].any()) and self.request.algorithm.vf_coef != 0.0

    def _add_up(self, chosen: Sequence[int], weights: Weights, size: int) -> dict[str, float]:
        lengths = [self.rows.examples[row].length for row in chosen]
        limits = self.learner.position_limits
        batches = plan(lengths, micro_batch_size=size, ranks=self.settings.ranks, limits=limits)[self.rank]
        parts: list[dict[str, float]] = []
        for number, batch in enumerate(batches):
            weight = torch.tensor(weights[list(batch.rows)], dtype=torch.float32) * float(batch.counted)
            objective = self._objective([chosen[index] for index in batch.rows], batch, weight)
            self.learner.backward(self.request.algorithm.vf_coef * objective.loss, last=number + 1 == len(batches))
            if batch.counted:
                parts.append({name: float(part) for name, part in objective.sums.items()})
        return distributed.total(merge_sums(parts), self.learner.device)

    def _objective(self, members: Sequence[int], batch: MicroBatch, weight: torch.Tensor) -> ValueObjective:
        rows, device = self.rows, self.learner.device
        assert rows.old_values is not None
        assert rows.returns is not None

        def of_members(lists: Sequence[Sequence[float]]) -> torch.Tensor:
            return aligned([lists[row] for row in members], device=device)

        tokens = token_batch([rows.examples[row] for row in members], width=batch.width, device=device)
        values, _ = completion_values(self.learner.engine, tokens)
        return value_objective(
            values,
            of_members(rows.old_values),
            of_members(rows.returns),
            of_members(rows.masks).bool(),
            weight.to(device),
            cliprange_value=self.request.algorithm.cliprange_value,
        )


def critic_stats(update: CriticUpdate | None, steps: Sequence[CriticStep]) -> dict[str, float | None]:
    """Figures of the critic's steps by their names in `papo.metrics.UpdateStats`; explained variance is that of the
    first pass, before the critic has seen the returns."""
    if update is None or not steps:
        return dict.fromkeys(CRITIC_FIGURES)
    measured = [step for step in steps if step.applied] or steps
    tokens = max(sum(step.sums["value_tokens"] for step in measured), 1.0)
    return {
        "value_loss": sum(step.sums["value_loss"] for step in measured) / len(measured),
        "value_clip_fraction": sum(step.sums["value_clipped"] for step in measured) / tokens,
        "explained_variance": explained_variance(steps[0].sums),
        "critic_grad_norm": sum(step.norm for step in measured) / len(measured),
    }


CRITIC_FIGURES = ("value_loss", "value_clip_fraction", "explained_variance", "critic_grad_norm")
