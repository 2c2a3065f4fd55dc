"""Token rewards of an implicit PRM: a model's log-ratio to its reference (arXiv:2412.01981, 2502.01456)."""

from typing import Literal

import numpy as np
from jaxtyping import Bool

from papo.rollouts import Ragged, Values, ragged

PrimeNorm = Literal["none", "batch_norm"]
LastToken = Literal["keep", "zero"]


def implicit_token_rewards(
    prm_logprobs: Ragged,
    ref_logprobs: Ragged,
    *,
    beta: float = 0.05,
    granularity: Literal["token", "whole"] = "token",
    last_token: LastToken = "keep",
    reward_lambda: float = 0.0,
    ground_truth: Values | None = None,
) -> Ragged:
    """r_t = β·(log π_φ(y_t) − log π_ref(y_t)) for each token of each row (PRIME eq. 3).

    `whole` puts the row's sum on its last token. The rest reproduces verl's recipe: `ground_truth` replaces the last
    token's by r_o − Σ of the others, `reward_lambda` makes each token's the λ-weighted sum of its own and all later
    ones, and last_token="zero" then drops the last one. PRIME's first repository used beta = 1.
    """
    rows: list[Values] = []
    for row in range(prm_logprobs.rows):
        rewards = beta * (prm_logprobs.row(row) - ref_logprobs.row(row))
        if granularity == "whole" and len(rewards):
            rewards = np.append(np.zeros(len(rewards) - 1), rewards.sum())
        if ground_truth is not None and len(rewards):
            rewards[-1] = ground_truth[row] - rewards[:-1].sum()
        for at in range(len(rewards) - 2, -1, -1):
            rewards[at] += reward_lambda * rewards[at + 1]
        if last_token == "zero":
            rewards[-1:] = 0.0
        rows.append(rewards)
    return ragged(rows)


def prime_normalized(
    rewards: Ragged, *, prime_norm: PrimeNorm, where: Bool[np.ndarray, " items"] | None = None
) -> Ragged:
    """batch_norm: divided by the largest |Σ_{s ≥ t} r_s| of the batch + 1e-6, so that returns are within ±1.

    `where`: the tokens that take part (None: all); the others neither add to a sum nor are the largest.
    """
    if prime_norm == "none":
        return rewards
    counted = rewards if where is None else Ragged(values=np.where(where, rewards.values, 0.0), offsets=rewards.offsets)
    largest = max(
        (np.abs(np.cumsum(counted.row(row)[::-1])).max(initial=0.0) for row in range(counted.rows)), default=0.0
    )
    return Ragged(values=rewards.values / (largest + 1e-6), offsets=rewards.offsets)


def step_rewards(token_rewards: Ragged, step_ends: Ragged, *, return_q: bool = False) -> Ragged:
    """Reward of each step, q_t − q_{t−1}, the sum of its tokens' rewards; with return_q, the Q-values themselves."""
    rows: list[Values] = []
    for row in range(token_rewards.rows):
        q = np.append(0.0, np.cumsum(token_rewards.row(row)))[step_ends.row(row).astype(np.int64) + 1]
        rows.append(q if return_q else np.diff(q, prepend=0.0))
    return ragged(rows)
