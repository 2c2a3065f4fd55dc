"""Randomness that is addressed, not consumed: every draw is a function of where it stands in the run.

Three layers, each a pure function:

    seed_for       the seed of one stage or one rollout, from (run seed, stage, iteration, group, sample)
    epoch_order    the order of the data in one epoch, from (run seed, stage, epoch)
    gumbel_noise   the noise of one token of one rollout, from (row seed, position, token)

so any rollout can be made again alone, in any order, on any worker, in any batch. The integer arithmetic is our own
and modulo 2^64, so it does not change with the version of numpy, and torch can repeat it in wrapping int64.
"""

import json
from hashlib import blake2b

import numpy as np
from jaxtyping import Float64, Int64, UInt64
from numpy.typing import NDArray

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
"""Increment of splitmix64: 2^64 divided by the golden ratio, odd. As int64: −7046029254386353131."""
MIX_FIRST = 0xBF58476D1CE4E5B9
"""First multiplier of `mix64`. As int64: −4658895280553007687."""
MIX_SECOND = 0x94D049BB133111EB
"""Second multiplier of `mix64`. As int64: −7723592293110705685."""

Hashes = UInt64[np.ndarray, "..."]


def seed_for(run_seed: int, *, stage: str, iteration: int = 0, group_id: int = 0, sample_index: int = 0) -> int:
    """The seed of one address of a run, in [0, 2^63): the top 63 bits of blake2b over the canonical address.

    The address is the compact JSON list ["papo-seed/1", run_seed, stage, iteration, group_id, sample_index] in ASCII.
    """
    address = json.dumps(["papo-seed/1", run_seed, stage, iteration, group_id, sample_index], separators=(",", ":"))
    digest = blake2b(address.encode("ascii"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def epoch_order(run_seed: int, *, epoch: int, size: int, stage: str = "data") -> NDArray[np.int64]:
    """A permutation of range(size): the order in which one epoch visits the data rows.

    Rows are sorted by the hash of (epoch seed, row), so the order does not depend on a library's shuffle.
    """
    start = np.array([seed_for(run_seed, stage=stage, iteration=epoch)], dtype=np.uint64)
    keys = _stream(mix64(start), np.arange(size, dtype=np.uint64))
    return np.argsort(keys, kind="stable").astype(np.int64)


def gumbel_noise(
    seeds: Int64[np.ndarray, " rows"], *, position: int, vocabulary: int
) -> Float64[np.ndarray, "rows vocabulary"]:
    """Standard Gumbel noise of every (row, token) at one position: argmax(log p + noise) samples from p.

    With all arithmetic modulo 2^64 and >> filling in zeros from the left,

        mix64(z)    z ^= z >> 30;  z *= MIX_FIRST;  z ^= z >> 27;  z *= MIX_SECOND;  z ^= z >> 31
        row_key     = mix64(seed)
        token_state = mix64(row_key + (position + 1) · GOLDEN_GAMMA)
        bits        = mix64(token_state + (token + 1) · GOLDEN_GAMMA)
        u           = ((bits >> 11) | 1) · 2^−53          odd multiples of 2^−53: never 0, never 1
        noise       = −log(−log u)                         float64, within −3.61 and 36.74

    Each line is one step of splitmix64 (Steele, Lea & Flood 2014, finaliser "variant 13"). In signed int64 the same
    bits come out of wrapping + and *, with the constants as the int64 of the same bits, and with z >> n written as
    (z >> n) & (2^(64−n) − 1), because >> of a signed integer repeats the sign. `seeds` are read as their bits.
    """
    row_keys = mix64(seeds.view(np.uint64))
    token_states = _stream(row_keys, np.array([position], dtype=np.uint64))
    bits = _stream(token_states[:, None], np.arange(vocabulary, dtype=np.uint64))
    uniform = ((bits >> np.uint64(11)) | np.uint64(1)).astype(np.float64) * 2.0**-53
    return -np.log(-np.log(uniform))


def mix64(bits: Hashes) -> Hashes:
    """The splitmix64 finaliser: a bijection of 64-bit words in which each input bit flips half of the output bits."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(MIX_FIRST)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(MIX_SECOND)
    return bits ^ (bits >> np.uint64(31))


def _stream(state: Hashes, index: Hashes) -> Hashes:
    """Element `index` of the splitmix64 sequence that starts from `state`."""
    return mix64(state + (index + np.uint64(1)) * np.uint64(GOLDEN_GAMMA))
