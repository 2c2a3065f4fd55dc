"""Positions, logits and ids lined up."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from papo.engines.batching import Example, TokenBatch, padded, plan, token_batch
from papo.engines.forward import score_completions

VOCABULARY = 7


class Clockwork(torch.nn.Module):
    """Puts probability 0.9 on token (position of the next token) mod vocabulary, whatever came before."""

    def __init__(self, *, keeps: bool) -> None:
        super().__init__()
        self.keeps = keeps

    def logits(self, input_ids: torch.Tensor) -> torch.Tensor:
        rows, width = input_ids.shape
        table = torch.full((rows, width, VOCABULARY), math.log(0.1 / (VOCABULARY - 1)))
        table[:, torch.arange(width), (torch.arange(width) + 1) % VOCABULARY] = math.log(0.9)
        return table


class Keeping(Clockwork):
    def forward(self, input_ids: torch.Tensor, use_cache: bool, logits_to_keep: int = 0) -> Any:
        return SimpleNamespace(logits=self.logits(input_ids)[:, -logits_to_keep:])


class Whole(Clockwork):
    def forward(self, input_ids: torch.Tensor, use_cache: bool) -> Any:
        return SimpleNamespace(logits=self.logits(input_ids))


def clockwork_rows() -> list[Example]:
    def row(prompt: int, completion: int) -> Example:
        tokens = [position % VOCABULARY for position in range(prompt + completion)]
        return Example(tokens[:prompt], tokens[prompt:])

    return [row(3, 9), row(1, 1), row(8, 4), row(2, 14)]


@pytest.mark.parametrize("model", [Keeping(keeps=True), Whole(keeps=False)])
def test_bug_024_every_position_has_the_logprob_of_its_own_token(model: Clockwork) -> None:
    rows = clockwork_rows()
    batch = token_batch(rows, width=16, device=torch.device("cpu"))
    logprobs = score_completions(model, batch, temperature=1.0).logprobs
    assert logprobs.shape == batch.completion_mask.shape
    assert batch.completion_mask.sum(-1).tolist() == [len(row.completion) for row in rows]
    torch.testing.assert_close(logprobs[batch.completion_mask], torch.full((28,), math.log(0.9)))


def test_entropies_stand_at_the_same_positions() -> None:
    class Sharpening(Whole):
        def logits(self, input_ids: torch.Tensor) -> torch.Tensor:
            return super().logits(input_ids) * torch.arange(input_ids.shape[1])[:, None]

    batch = token_batch([Example([0, 0], [0, 0, 0])], width=8, device=torch.device("cpu"))
    entropies = score_completions(Sharpening(keeps=False), batch, temperature=1.0, entropies=True).entropies
    assert entropies is not None
    assert entropies.shape == (1, 3)
    assert entropies[0, 0] > entropies[0, 1] > entropies[0, 2]


def test_rows_without_completion_tokens_are_legal() -> None:
    batch = token_batch([Example([1, 2], [])], width=16, device=torch.device("cpu"))
    assert score_completions(Whole(keeps=False), batch, temperature=1.0).logprobs.shape == (1, 0)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 3, 64])
def test_every_row_is_counted_once_and_ranks_work_in_step(ranks: int, size: int) -> None:
    lengths = [5, 40, 17, 16, 33, 8, 90, 16, 16, 21]
    plans = plan(lengths, micro_batch_size=size, ranks=ranks)
    assert len({len(batches) for batches in plans}) == 1
    counted = [row for batches in plans for batch in batches if batch.counted for row in batch.rows]
    assert sorted(counted) == list(range(len(lengths)))
    for batch in (batch for batches in plans for batch in batches):
        assert len(batch.rows) <= size
        assert {padded(lengths[row]) for row in batch.rows} == {batch.width}


def test_c_23_no_row_is_padded_past_a_position_that_it_does_not_reach_itself() -> None:
    lengths = [58, 60, 62, 30, 64]
    (batches,) = plan(lengths, micro_batch_size=8, ranks=1, limits=(60,))
    widths = {row: batch.width for batch in batches for row in batch.rows}
    assert [widths[row] for row in range(5)] == [60, 60, 64, 32, 64]


def test_more_ranks_than_rows_is_filled_up() -> None:
    plans = plan([4], micro_batch_size=8, ranks=3)
    assert [[batch.counted for batch in batches] for batches in plans] == [[True], [False], [False]]


def test_padding_is_not_seen(bench: Any) -> None:
    """A causal model computes the same for a row whatever stands behind it."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(bench.model).eval()
    rows = [Example([12, 17, 13], [2, 3, 1]), Example([9, 9], [4, 5, 6, 7])]
    batch = token_batch(rows, width=32, device=torch.device("cpu"))
    noisy = TokenBatch(input_ids=batch.input_ids.clone(), first=batch.first, lengths=batch.lengths)
    noisy.input_ids[0, 6:] = 11
    clean, other = (score_completions(model, each, temperature=0.7).logprobs for each in (batch, noisy))
    assert torch.equal(clean[batch.completion_mask], other[batch.completion_mask])
    alone = model(torch.tensor([[9, 9, 4, 5, 6, 7]])).logits[0].div(0.7).log_softmax(-1)
    expected = alone[torch.arange(1, 5), torch.tensor([4, 5, 6, 7])]
    torch.testing.assert_close(clean[1], expected, atol=1e-5, rtol=0)
