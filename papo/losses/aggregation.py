"""From token losses to one number: four rules, each as one weight a row, computed once for the optimisation batch.

    loss = Σ_b w_b Σ_t mask_bt · ℓ_bt

As the weights know the whole batch, the loss of a micro-batch is just its part of the sum: neither micro-batches, nor
padding, nor the number of ranks changes the gradient.
"""

from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64, Int

LossAggMode = Literal["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"]
EmptyRows = Literal["exclude", "count"]


def row_weights(
    lengths: Int[np.ndarray, " rollouts"],
    *,
    mode: LossAggMode,
    constant: int | None = None,
    empty_rows: EmptyRows = "exclude",
    where: Bool[np.ndarray, " rollouts"] | None = None,
) -> Float64[np.ndarray, " rollouts"]:
    """Weight of each row's token sum; 0 for rows without tokens, so a fully masked batch has loss 0.

        token-mean                 1 / N         N = all training tokens of the batch (DAPO, verl's default)
        seq-mean-token-mean        1 / (B·L_b)   (GRPO's paper, PAPO eq. 1)
        seq-mean-token-sum         1 / B
        seq-mean-token-sum-norm    1 / (B·C)     C = `constant` (Dr. GRPO: the longest completion allowed)

    `lengths` are counted after the last mask. B counts the rows with tokens (verl) or, with empty_rows="count", all
    of them (TRL). Rows outside `where` (no reward) take no part at all. Raises ValueError on an unknown mode or if
    seq-mean-token-sum-norm has no positive constant: a padded width would make the loss depend on the batch.
    """
    taking_part = np.ones(len(lengths), dtype=np.bool_) if where is None else where
    training = taking_part & (lengths > 0)
    rows = int(training.sum() if empty_rows == "exclude" else taking_part.sum())
    weights = np.zeros(len(lengths), dtype=np.float64)
    weights[training] = 1.0 / _divisors(lengths[training].astype(np.float64), rows, mode=mode, constant=constant)
    return weights


def _divisors(
    lengths: Float64[np.ndarray, " training"], rows: int, *, mode: LossAggMode, constant: int | None
) -> Float64[np.ndarray, " training"]:
    if mode == "token-mean":
        return np.full_like(lengths, lengths.sum())
    if mode == "seq-mean-token-mean":
        return rows * lengths
    if mode == "seq-mean-token-sum":
        return np.full_like(lengths, rows)
    if mode == "seq-mean-token-sum-norm":
        if constant is None or constant <= 0:
            raise ValueError(
                f"loss_agg_mode seq-mean-token-sum-norm divides by loss_norm_constant, which is {constant}:"
                " set it to the longest completion allowed."
            )
        return np.full_like(lengths, rows * float(constant))
    raise ValueError(f"loss_agg_mode {mode!r} is unknown: use one of {', '.join(LossAggMode.__args__)}.")
