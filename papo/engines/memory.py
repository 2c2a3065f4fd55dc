"""The same gradient in less memory: activations computed again, smaller micro-batches when it runs out."""

import functools
import gc
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch.utils.checkpoint import checkpoint

from papo.engines.out_of_memory import ran_out
from papo.errors import EngineError

T = TypeVar("T")


@runtime_checkable
class Shrinking(Protocol):
    """A learner, as far as its micro-batches go."""

    micro_batch_size: int

    @property
    def can_shrink(self) -> bool: ...
    def shrink(self) -> None: ...


def within_memory(learner: Shrinking, add_up: Callable[[int], T]) -> T:
    """`add_up(micro_batch_size)`, which gathers the gradient of one optimizer step and applies nothing.

    Where memory runs out, what was gathered is dropped and it is called again with half the rows. Raises the error that
    said so where the learner cannot do that.
    """
    while True:
        try:
            return add_up(learner.micro_batch_size)
        except RuntimeError as error:
            if not (ran_out(error) and learner.can_shrink):
                raise
        # After the except block, as its traceback holds on to the activations.
        learner.shrink()


def free() -> None:
    """Give back what nothing refers to any more."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def recompute_activations(module: Any) -> None:
    """Keep the inputs of each block only, and compute the rest again in the backward pass.

    transformers' own switch acts in training mode alone, in which dropout would act too. Raises EngineError where the
    model has no blocks that it can be done for.
    """
    from transformers.modeling_layers import GradientCheckpointingLayer  # noqa: PLC0415

    blocks = [layer for layer in module.modules() if isinstance(layer, GradientCheckpointingLayer)]
    if not blocks:
        raise EngineError(
            f"{type(module).__name__} has no blocks whose activations can be computed again: set"
            " engine.activation_checkpointing to false and lower engine.micro_batch_size."
        )
    for block in blocks:
        block.forward = _recomputed(block.forward)


def _recomputed(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def recomputed(*arguments: Any, **named: Any) -> Any:
        if not torch.is_grad_enabled():
            return forward(*arguments, **named)
        return checkpoint(functools.partial(forward, **named), *arguments, use_reentrant=False)

    return recomputed
