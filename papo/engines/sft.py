"""Supervised steps on prompts and completions: the cold start before RL."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import torch

from papo.engines import distributed
from papo.engines.batching import Example, plan, token_batch
from papo.engines.forward import score_completions
from papo.engines.learner import Learner
from papo.engines.memory import within_memory
from papo.engines.requests import SftPhase, SftSteps
from papo.engines.settings import EngineSettings
from papo.errors import DataError, EngineError, NonFinite
from papo.losses import row_weights
from papo.seeding import epoch_order


def train_supervised(
    learner: Learner, request: SftSteps, *, settings: EngineSettings, rank: int, tick: Callable[[int, int], None]
) -> list[float]:
    """Take the steps `first`..`first + count` − 1 and return the loss of each: mean −log p of completion tokens.

    Raises NonFinite at a step whose loss or gradient is not finite: without rewards there is nothing to wait for.
    Raises EngineError when the open policy has not taken exactly the steps before `first`.
    """
    if learner.optimizer_steps != request.first:
        raise EngineError(
            f"supervised step {request.first} is to follow, but the open policy has taken {learner.optimizer_steps}"
            " optimizer steps: open the checkpoint that was saved before this step."
        )
    frame = pl.read_parquet(request.rows, columns=["prompt_ids", "completion_ids", "style"])
    examples = [Example(*pair) for pair in frame.select("prompt_ids", "completion_ids").iter_rows()]
    pools = [_pool(frame["style"].to_list(), phase) for phase in request.phases]
    optimizer = request.optimizer
    if optimizer.schedule_steps is None:
        optimizer = replace(optimizer, schedule_steps=request.total)
    losses: list[float] = []
    for step in range(request.first, request.first + request.count):
        batch = [examples[row] for row in batch_rows(request, pools, step)]
        loss = within_memory(learner, partial(_accumulate, learner, batch, settings, rank))
        norm, applied = learner.step(optimizer, finite=bool(np.isfinite(loss)))
        if not applied:
            raise NonFinite(
                f"supervised step {step} has loss {loss} and gradient norm {norm}: lower the learning rate or look at"
                " the precision; the weights are as before this step."
            )
        losses.append(loss)
        tick(len(losses), request.count)
    return losses


def batch_rows(request: SftSteps, pools: Sequence[Sequence[int]], step: int) -> list[int]:
    """The rows of one step, a function of (seed, step): each pass over a phase's rows visits every one once."""
    number, start = _phase_of(request, step)
    pool = pools[number]
    first = (step - start) * request.batch_size
    chosen: list[int] = []
    while len(chosen) < request.batch_size:
        epoch, offset = divmod(first + len(chosen), len(pool))
        order = epoch_order(request.seed, epoch=epoch, size=len(pool), stage=f"sft/{number}")
        chosen += [pool[place] for place in order[offset : offset + request.batch_size - len(chosen)]]
    return chosen


def _phase_of(request: SftSteps, step: int) -> tuple[int, int]:
    """(index of the phase that `step` lies in, first step of that phase)."""
    whole = sum(phase.share for phase in request.phases)
    passed, start = 0.0, 0
    for number, phase in enumerate(request.phases):
        passed += phase.share
        end = round(request.total * passed / whole)
        if step < end or number + 1 == len(request.phases):
            return number, start
        start = end
    raise DataError("supervised training has no phases: give at least one with a share above 0.")


def _pool(styles: Sequence[str], phase: SftPhase) -> list[int]:
    rows = [row for row, style in enumerate(styles) if not phase.styles or style in phase.styles]
    if not rows:
        raise DataError(f"no supervised row has a style among {', '.join(phase.styles)}: see the mixture of the data.")
    return rows


def _accumulate(learner: Learner, batch: Sequence[Example], settings: EngineSettings, rank: int, size: int) -> float:
    """Add the gradient of one step in micro-batches of `size` rows; returns its loss over all ranks."""
    weights = row_weights(np.array([len(row.completion) for row in batch]), mode="token-mean")
    lengths, limits = [row.length for row in batch], learner.position_limits
    batches = plan(lengths, micro_batch_size=size, ranks=settings.ranks, limits=limits)[rank]
    total = 0.0
    for number, micro in enumerate(batches):
        tokens = token_batch([batch[row] for row in micro.rows], width=micro.width, device=learner.device)
        logprobs = score_completions(learner.engine, tokens, temperature=1.0).logprobs
        weight = torch.tensor(weights[list(micro.rows)], dtype=torch.float32) * float(micro.counted)
        kept = logprobs.masked_fill(~tokens.completion_mask, 0.0)
        loss = -(weight.to(learner.device) * kept.sum(-1)).sum()
        learner.backward(loss, last=number + 1 == len(batches))
        total += float(loss.detach())
    return distributed.total({"loss": total}, learner.device)["loss"]
