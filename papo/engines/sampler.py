"""Drawing tokens by addressed noise inside `generate`: a row depends on nothing but its own logits and seed."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from transformers import LogitsProcessor, StoppingCriteria

from papo.engines.decoding import Watch
from papo.seeding import GOLDEN_GAMMA, MIX_FIRST, MIX_SECOND


def _as_int64(bits: int) -> int:
    return bits - (1 << 64) if bits >= 1 << 63 else bits


GAMMA, FIRST, SECOND = map(_as_int64, (GOLDEN_GAMMA, MIX_FIRST, MIX_SECOND))


class GumbelNoise:
    """`papo.seeding.gumbel_noise` in torch, bit for bit up to the last digits of log, on any device."""

    def __init__(self, seeds: Tensor, *, vocabulary: int) -> None:
        """`seeds`: int64, one a row."""
        self._row_keys = _mix64(seeds.clone())
        self._tokens = (torch.arange(vocabulary, dtype=torch.int64, device=seeds.device) + 1) * GAMMA

    def at(self, position: int) -> Tensor:
        """Standard Gumbel noise of every (row, token) at a completion position: float64."""
        offset = _as_int64((position + 1) * GOLDEN_GAMMA % (1 << 64))
        states = _mix64(self._row_keys + offset)
        bits = _mix64(states[:, None] + self._tokens)
        uniform = _shifted(bits, 11).bitwise_or_(1).double().mul_(2.0**-53)
        return uniform.log_().neg_().log_().neg_()


class AddressedSampler(LogitsProcessor):
    """Chooses each token by argmax of log-probs plus noise, and keeps the log-prob of what it chose.

    `generate` runs it with do_sample=False; it returns scores in which only the chosen token is finite. Temperature 0
    chooses the likeliest token; log-probs are then those at temperature 1.
    """

    def __init__(self, seeds: Tensor, *, width: int, temperature: float, tick: Callable[[int], None]) -> None:
        """`width`: length of the padded prompts. `tick` is told the number of positions decoded so far."""
        self._seeds = seeds
        self._width = width
        self._temperature = temperature
        self._tick = tick
        self._noise: GumbelNoise | None = None
        self.chosen_logprobs: list[Tensor] = []
        """One float32 tensor of all rows for each position."""

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        position = input_ids.shape[1] - self._width
        logprobs = torch.log_softmax(scores.float() / (self._temperature or 1.0), dim=-1)
        keys = logprobs
        if self._temperature:
            if self._noise is None:
                self._noise = GumbelNoise(self._seeds, vocabulary=scores.shape[-1])
            keys = self._noise.at(position).add_(logprobs)
        chosen = keys.argmax(-1, keepdim=True)
        self.chosen_logprobs.append(logprobs.gather(-1, chosen)[:, 0])
        self._tick(position + 1)
        return torch.full_like(scores, -torch.inf).scatter_(-1, chosen, 0.0)


class StopRows(StoppingCriteria):
    """Ends each row of a batch for itself, once its watch has seen a stop string; the batch keeps its shape."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = watches
        self._ended = [False] * len(watches)

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> torch.BoolTensor:
        for row, index in enumerate(input_ids[:, -1].tolist()):
            if not self._ended[row]:
                self._ended[row] = self._watches[row](index) is not None
        return cast("torch.BoolTensor", torch.tensor(self._ended, device=input_ids.device))


def _mix64(bits: Tensor) -> Tensor:
    """The splitmix64 finaliser, in place, on the int64 of the same bits."""
    bits.bitwise_xor_(_shifted(bits, 30)).mul_(FIRST)
    bits.bitwise_xor_(_shifted(bits, 27)).mul_(SECOND)
    return bits.bitwise_xor_(_shifted(bits, 31))


def _shifted(bits: Tensor, places: int) -> Tensor:
    """`bits` to the right with zeros moving in; >> of a signed integer alone repeats the sign."""
    return (bits >> places).bitwise_and_((1 << (64 - places)) - 1)
