from typing import Any

import numpy as np
import pytest
from scipy import stats

from papo.seeding import GOLDEN_GAMMA, MIX_FIRST, MIX_SECOND, epoch_order, gumbel_noise, mix64, seed_for

MASK = 2**64 - 1


def test_seed_is_a_fixed_function_of_the_address():
    """A changed value would change every run: the address format is part of the record."""
    assert seed_for(7, stage="generate", iteration=3, group_id=2, sample_index=5) == 7200862916510962507
    assert seed_for(0, stage="data") == 7875928988437951421


def test_every_part_of_the_address_changes_the_seed():
    base: dict[str, Any] = {"stage": "generate", "iteration": 1, "group_id": 2, "sample_index": 3}
    others: dict[str, Any] = {"stage": "evaluate", "iteration": 2, "group_id": 3, "sample_index": 4}
    seeds = {seed_for(0, **(base | {name: other})) for name, other in others.items()}
    seeds |= {seed_for(0, **base), seed_for(1, **base)}
    assert len(seeds) == 6
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_same_data_row_drawn_twice_gets_other_seeds():
    """BUG-025: a group is one draw of one row, so the group id is in the address and the row's text is not."""
    seeds = {seed_for(0, stage="generate", group_id=group, sample_index=k) for group in range(4) for k in range(4)}
    assert len(seeds) == 16


def test_each_epoch_visits_every_row_once_in_an_order_of_its_own():
    """BUG-026."""
    first, second = (epoch_order(5, epoch=epoch, size=20) for epoch in (0, 1))
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(20))
    assert first.tolist() != second.tolist()
    assert first.tolist() == epoch_order(5, epoch=0, size=20).tolist()
    assert first.tolist() != epoch_order(6, epoch=0, size=20).tolist()
    assert epoch_order(5, epoch=0, size=0).dtype == np.int64


def test_mix64_is_splitmix64():
    """First outputs of the reference generator from seed 0 (Vigna's splitmix64.c)."""
    states = np.array([GOLDEN_GAMMA, 2 * GOLDEN_GAMMA & MASK, 3 * GOLDEN_GAMMA & MASK], dtype=np.uint64)
    assert mix64(states).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_noise_follows_the_documented_integer_steps():
    """Worked out with Python's unbounded integers, as the docstring says it; a negative seed is read as its bits."""

    def mix(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    seeds, position = [12345, -7], 3
    noise = gumbel_noise(np.array(seeds), position=position, vocabulary=5)
    for row, seed in enumerate(seeds):
        state = mix((mix(seed & MASK) + (position + 1) * GOLDEN_GAMMA) & MASK)
        for token in range(5):
            uniform = ((mix((state + (token + 1) * GOLDEN_GAMMA) & MASK) >> 11) | 1) / 2**53
            assert noise[row, token] == pytest.approx(-np.log(-np.log(uniform)), rel=1e-14)


def seed_with_bits(bits: int) -> int:
    """The row seed whose hash at position 0 and token 0 is `bits`: mix64 is a bijection, run backwards."""

    def unshift(z: int, by: int) -> int:
        found = z
        for _ in range(64 // by):
            found = z ^ (found >> by)
        return found

    def unmix(z: int) -> int:
        z = unshift(z, 31) * pow(MIX_SECOND, -1, 2**64) & MASK
        z = unshift(z, 27) * pow(MIX_FIRST, -1, 2**64) & MASK
        return unshift(z, 30)

    seed = unmix((unmix((unmix(bits) - GOLDEN_GAMMA) & MASK) - GOLDEN_GAMMA) & MASK)
    return seed - 2**64 if seed >= 2**63 else seed


def test_the_rarest_hashes_still_give_finite_noise():
    """All zeros would be u = 0 and all ones u = 1, both of infinite noise, without the last bit being set."""
    noise = gumbel_noise(np.array([seed_with_bits(0), seed_with_bits(MASK)]), position=0, vocabulary=1)
    assert noise[:, 0].tolist() == pytest.approx([-np.log(53 * np.log(2)), 53 * np.log(2)], rel=1e-9)


def test_noise_of_a_row_does_not_depend_on_its_neighbours_or_the_vocabulary():
    seeds = np.array([seed_for(0, stage="generate", sample_index=k) for k in range(8)])
    together = gumbel_noise(seeds, position=4, vocabulary=32)
    alone = gumbel_noise(seeds[3:4], position=4, vocabulary=20)
    assert np.array_equal(together[3, :20], alone[0])


def draws(positions: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens sampled over many rows and positions, and the probabilities they should have."""
    logits = np.array([2.0, 0.5, 0.0, -1.0, -3.0, 1.0, 0.9])
    logprobs = logits - np.log(np.exp(logits).sum())
    seeds = np.array([seed_for(11, stage="generate", sample_index=row) for row in range(rows)])
    noise = [gumbel_noise(seeds, position=position, vocabulary=len(logits)) for position in range(positions)]
    return np.stack([(logprobs + one).argmax(1) for one in noise]), np.exp(logprobs)


def test_sampling_passes_chi_square_against_softmax():
    tokens, probabilities = draws(positions=40, rows=1000)
    counts = np.bincount(tokens.ravel(), minlength=len(probabilities))
    assert stats.chisquare(counts, probabilities * tokens.size).pvalue > 0.001


@pytest.mark.parametrize("axis", ["positions", "rows"])
def test_neighbouring_draws_are_independent(axis: str):
    tokens, probabilities = draws(positions=40, rows=1000)
    one, other = (tokens[:-1], tokens[1:]) if axis == "positions" else (tokens[:, :-1], tokens[:, 1:])
    # every second pair only, so that pairs do not share a draw
    one, other = (one[::2], other[::2]) if axis == "positions" else (one[:, ::2], other[:, ::2])
    pairs = np.bincount((one * len(probabilities) + other).ravel(), minlength=len(probabilities) ** 2)
    expected = np.outer(probabilities, probabilities).ravel() * one.size
    likely = expected > 5
    observed = np.append(pairs[likely], pairs[~likely].sum())
    assert stats.chisquare(observed, np.append(expected[likely], expected[~likely].sum())).pvalue > 0.001


def test_noise_of_adjacent_seeds_and_tokens_is_uncorrelated():
    """Small consecutive seeds are the worst case for a hash that mixes too little."""
    noise = gumbel_noise(np.arange(2000), position=0, vocabulary=50)
    spread = 4 / np.sqrt(noise.size)
    assert abs(np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]) < spread
    assert abs(np.corrcoef(noise[:, :-1].ravel(), noise[:, 1:].ravel())[0, 1]) < spread
    assert stats.kstest(noise.ravel(), "gumbel_r").pvalue > 0.001
    assert np.isfinite(noise).all()
