"""Batches of rollouts and of token tensors, as hypothesis draws them."""

from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from papo.rollouts import Ragged, ScoredRollouts

rewards = st.floats(-100, 100, allow_nan=False).map(lambda number: round(number, 3))
scores = st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1).map(lambda number: round(number, 3))


@st.composite
def rollouts(draw: st.DrawFn, *, outcomes: st.SearchStrategy[float] = rewards, holes: bool = True) -> ScoredRollouts:
    """One to four groups of one to eight rows, interleaved; with `holes`, rewards and scores may be missing."""
    sizes = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    group = np.array(draw(st.permutations([g for g, size in enumerate(sizes) for _ in range(size)])), dtype=np.int64)
    missing = st.just(float("nan"))
    rows = len(group)
    return ScoredRollouts(
        group=group,
        outcome=np.array(draw(st.lists(outcomes | missing if holes else outcomes, min_size=rows, max_size=rows))),
        correct=np.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows))),
        process=np.array(draw(st.lists(scores | missing if holes else scores, min_size=rows, max_size=rows))),
        lengths=np.array(draw(st.lists(st.integers(0, 9), min_size=rows, max_size=rows))),
    )


def joined(rows: list[np.ndarray]) -> Ragged:
    """As `papo.rollouts.ragged`, whose type check of a list draws from `random`: not for strategies."""
    offsets = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    return Ragged(values=np.concatenate([np.empty(0), *rows]), offsets=offsets)


@st.composite
def token_rollouts(draw: st.DrawFn, *, holes: bool = True, full_mask: bool = False) -> ScoredRollouts:
    """`rollouts` with numbers of every kind for each token, steps that cover the row, and (maybe) masked tokens."""
    batch = draw(rollouts(holes=holes))
    source = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = 1.0 if full_mask else draw(st.sampled_from([0.5, 0.8, 1.0]))

    def lists(scale: float = 1.0) -> Ragged:
        return joined([source.normal(scale=scale, size=length) for length in batch.lengths])

    ends = [np.array(sorted({*source.integers(0, length, 3), length - 1}) if length else [], dtype=float)
            for length in batch.lengths]  # fmt: skip
    scores = [source.choice([0.0, 0.5, 1.0, *([np.nan] if holes else [])], size=len(steps)) for steps in ends]
    return replace(
        batch,
        token_rewards=lists(0.2),
        token_values=lists(),
        token_mask=joined([(source.random(length) < share).astype(float) for length in batch.lengths]),
        step_ends=joined(ends),
        step_scores=joined(scores),
        truncated=source.random(len(batch.group)) < 0.3,
        final_values=source.normal(size=len(batch.group)),
        components=np.stack([batch.outcome, batch.process], axis=1),
    )


def select(batch: ScoredRollouts, order: np.ndarray) -> ScoredRollouts:
    """The given rows, in the given order, with all that belongs to them."""

    def chosen(part: object) -> object:
        if isinstance(part, Ragged):
            return joined([part.row(int(row)) for row in order])
        return part[order] if isinstance(part, np.ndarray) else part

    return ScoredRollouts(**{field.name: chosen(getattr(batch, field.name)) for field in fields(batch)})  # pyright: ignore[reportArgumentType]  # each field keeps its kind


@dataclass(frozen=True)
class Batch:
    """Token tensors of one optimisation batch, float64."""

    logprobs: Tensor
    old_logprobs: Tensor
    ref_logprobs: Tensor
    sampler_logprobs: Tensor
    advantages: Tensor
    mask: Tensor


@st.composite
def batches(draw: st.DrawFn, *, min_tokens: int = 0) -> Batch:
    """One to six rows of one to seven tokens, with holes in the mask and whole rows masked."""
    rows, width = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    source = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    mask = source.random((rows, width)) < draw(st.sampled_from([0.3, 0.7, 1.0]))
    if min_tokens:
        mask[0, 0] = True

    def numbers(scale: float) -> Tensor:
        return torch.from_numpy(source.normal(scale=scale, size=(rows, width)))

    old = -numbers(1.0).abs() - 0.01
    return Batch(
        logprobs=old + numbers(draw(st.sampled_from([0.0, 0.1, 1.0]))),
        old_logprobs=old,
        ref_logprobs=old + numbers(0.5),
        sampler_logprobs=old + numbers(0.02),
        advantages=numbers(1.0),
        mask=torch.from_numpy(mask),
    )
