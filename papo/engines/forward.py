"""Log-probs of completions under a model: the one place where positions, logits and ids are lined up."""

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from papo.engines.batching import TokenBatch
from papo.losses import full_kl, token_entropies, token_logprobs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompletionScores:
    """(rows, longest completion) float32 each; what stands behind a completion's end means nothing."""

    logprobs: Tensor
    entropies: Tensor | None


def score_completions(
    model: Any, batch: TokenBatch, *, temperature: float, entropies: bool = False
) -> CompletionScores:
    """The log-prob, and the entropy if asked, of each completion token given all before it."""
    logits, index = _completion_logits(model, batch)
    start = batch.input_ids.shape[1] - logits.shape[1]
    logprobs = token_logprobs(logits, batch.input_ids[:, start:], temperature=temperature)
    measured = token_entropies(logits, temperature=temperature).gather(1, index) if entropies else None
    return CompletionScores(logprobs=logprobs.gather(1, index), entropies=measured)


def completion_kl(policy: Any, reference: Any, batch: TokenBatch, *, temperature: float) -> Tensor:
    """(rows, longest completion): KL(policy‖reference) over the whole vocabulary at each completion token, in nats."""
    logits, index = _completion_logits(policy, batch)
    return full_kl(logits, _completion_logits(reference, batch)[0], temperature=temperature).gather(1, index)


def _completion_logits(model: Any, batch: TokenBatch) -> tuple[Tensor, Tensor]:
    """Logits from the earliest completion's start on, and where among them those of each completion token are."""
    width = batch.input_ids.shape[1]
    # A causal model's logits at position p are for the token at p + 1, so they are read one position earlier.
    start = int(batch.first.min()) - 1
    limits = {"logits_to_keep": width - start} if takes_logits_to_keep(model) else {}
    logits = model(input_ids=batch.input_ids, use_cache=False, **limits).logits[:, start - width : -1]
    columns = torch.arange(int(batch.lengths.max()), device=batch.first.device)
    return logits, (batch.first[:, None] - 1 - start + columns).clamp(max=width - start - 2)


def takes_logits_to_keep(model: Any) -> bool:
    """Whether the model can leave out the logits of the prompt, which are the larger part of its memory."""
    return "logits_to_keep" in inspect.signature(getattr(model, "module", model).forward).parameters
