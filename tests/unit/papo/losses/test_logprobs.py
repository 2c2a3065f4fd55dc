import math

import pytest
import torch

from papo.losses import chosen_logprobs, token_entropies, token_logprobs


def test_temperature_is_that_of_sampling():
    """BUG-005: logits [2, 0, 0], token 0: −0.035976 at temperature 0.5, −0.239545 at 1."""
    logits = torch.tensor([[[2.0, 0.0, 0.0]]])
    ids = torch.tensor([[0]])
    assert token_logprobs(logits, ids, temperature=0.5).item() == pytest.approx(-0.035976, abs=1e-6)
    assert token_logprobs(logits, ids, temperature=1.0).item() == pytest.approx(-0.239545, abs=1e-6)


def test_every_completion_token_gets_its_own_log_prob():
    """BUG-024: a model that gives 0.9 to token (position mod vocabulary) says log 0.9 at every completion token."""
    rows, prompt, completion, vocabulary = 2, 3, 6, 5
    positions = torch.arange(prompt + completion)
    input_ids = (positions % vocabulary).repeat(rows, 1)
    probabilities = torch.full((vocabulary, vocabulary), 0.1 / (vocabulary - 1))
    probabilities.fill_diagonal_(0.9)
    logits = probabilities[(positions + 1) % vocabulary].log().repeat(rows, 1, 1)
    found = chosen_logprobs(logits, input_ids, completion_width=completion, temperature=1.0)
    assert found.shape == (rows, completion)
    torch.testing.assert_close(found, torch.full((rows, completion), math.log(0.9)))


@pytest.mark.parametrize("width", [-1, 4, 5])
def test_a_completion_needs_a_token_before_it(width: int):
    with pytest.raises(ValueError, match="completion_width"):
        chosen_logprobs(
            torch.zeros(1, 4, 3), torch.zeros(1, 4, dtype=torch.long), completion_width=width, temperature=1.0
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_equals_log_softmax_in_value_and_gradient(dtype: torch.dtype, temperature: float):
    torch.manual_seed(0)
    logits = (4 * torch.randn(3, 4, 11)).to(dtype).requires_grad_()
    ids = torch.randint(0, 11, (3, 4))
    found = token_logprobs(logits, ids, temperature=temperature)
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    found.sum().backward()
    plain = logits.detach().double().requires_grad_()
    expected = (plain / temperature).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    expected.sum().backward()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    tolerance = 1e-5 if dtype in (torch.float32, torch.float64) else 2e-2
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad.double(), plain.grad, rtol=tolerance, atol=tolerance)


def test_no_rows_give_no_log_probs():
    for temperature in (1.0, 0.5):
        assert token_logprobs(
            torch.zeros(0, 4, 3), torch.zeros(0, 4, dtype=torch.long), temperature=temperature
        ).shape == (0, 4)


def test_entropy_of_even_odds_is_log_of_their_number():
    entropies = token_entropies(torch.zeros(1, 2, 7), temperature=0.5)
    torch.testing.assert_close(entropies, torch.full((1, 2), math.log(7.0)))
