"""The KL from the reference as a reward of each token, for PPO, RLOO and REINFORCE++: a value, never a gradient."""

from typing import Literal

import numpy as np
from jaxtyping import Float64

from papo.rollouts import Ragged

KlPenalty = Literal["k1", "abs", "k2", "k3"]


def kl_rewards(old_logprobs: Ragged, ref_logprobs: Ragged, *, kl_coef: float, kl_penalty: KlPenalty = "k1") -> Ragged:
    """−kl_coef·KL_t of each token, to be used as `token_rewards`: the outcome is added on the last token.

    k1 = log π_old − log π_ref is unbiased and the one to use here; k3 is clamped as verl's (20 in, 10 out).
    """
    difference = old_logprobs.values - ref_logprobs.values
    return Ragged(values=-kl_coef * _estimate(difference, kl_penalty), offsets=old_logprobs.offsets)


def _estimate(difference: Float64[np.ndarray, " tokens"], kl_penalty: KlPenalty) -> Float64[np.ndarray, " tokens"]:
    match kl_penalty:
        case "k1":
            return difference
        case "abs":
            return np.abs(difference)
        case "k2":
            return 0.5 * difference**2
        case "k3":
            exponent = np.clip(-difference, -20.0, 20.0)
            return np.clip(np.exp(exponent) - exponent - 1, -10.0, 10.0)
