"""The addressed sampler against its numpy reference and against softmax itself."""

import numpy as np
import pytest
import torch

from papo.engines.sampler import AddressedSampler, GumbelNoise
from papo.seeding import gumbel_noise, seed_for


def draw(
    logits: torch.Tensor, seeds: torch.Tensor, *, temperature: float = 1.0, position: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """(chosen token, its recorded log-prob) of each seed, all from the same logits."""
    sampler = AddressedSampler(seeds, width=3, temperature=temperature, tick=lambda _: None)
    ids = torch.zeros((len(seeds), 3 + position), dtype=torch.int64)
    chosen = sampler(ids, logits.expand(len(seeds), -1)).argmax(-1)
    return chosen, sampler.chosen_logprobs[0]


@pytest.mark.parametrize("position", [0, 1, 63, 4095])
def test_noise_is_that_of_the_numpy_reference(position: int) -> None:
    seeds = np.array([0, 1, 7, 2**62 + 12345, 2**63 - 1], dtype=np.int64)
    ours = GumbelNoise(torch.from_numpy(seeds), vocabulary=50).at(position).numpy()
    np.testing.assert_allclose(ours, gumbel_noise(seeds, position=position, vocabulary=50), rtol=1e-12)


def test_draws_pass_chi_square_against_softmax() -> None:
    torch.manual_seed(0)
    logits, draws = torch.randn(20) * 1.5, 200_000
    seeds = torch.tensor([seed_for(1, stage="chi", sample_index=i) for i in range(2000)])
    counts = np.zeros(20)
    for position in range(draws // len(seeds)):
        chosen, _ = draw(logits, seeds, position=position)
        counts += np.bincount(chosen.numpy(), minlength=20)
    expected = torch.softmax(logits, -1).double().numpy() * draws
    # 43.8 is the 99.9 % point at 19 degrees of freedom; the draws are fixed, so this cannot flicker.
    assert ((counts - expected) ** 2 / expected).sum() < 43.8


def test_temperature_scales_before_the_draw_and_in_the_recorded_logprob() -> None:
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
    seeds = torch.arange(4000)
    chosen, logprobs = draw(logits, seeds, temperature=2.0)
    expected = torch.log_softmax(logits / 2.0, -1)
    torch.testing.assert_close(logprobs, expected[chosen])
    assert abs((chosen == 0).float().mean() - expected[0].exp()) < 0.03


def test_temperature_zero_takes_the_likeliest_token() -> None:
    logits = torch.tensor([0.0, 3.0, 1.0])
    chosen, logprobs = draw(logits, torch.arange(50), temperature=0.0)
    assert (chosen == 1).all()
    torch.testing.assert_close(logprobs[0], torch.log_softmax(logits, -1)[1])


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    seeds = torch.arange(64)
    whole = GumbelNoise(seeds, vocabulary=30).at(5)
    part = GumbelNoise(seeds[10:11], vocabulary=30).at(5)
    assert torch.equal(whole[10:11], part)
    assert not torch.equal(whole[10], whole[11])
