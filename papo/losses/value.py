"""The critic's loss (PPO): squared error to the returns, clipped around the values it had before the update."""

from dataclasses import dataclass

from papo.losses.ratio import keep
from papo.losses.tensors import Rows, Scalar, TokenMask, Tokens


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValueObjective:
    """`loss` to call backward on, and detached float64 sums for the metrics."""

    loss: Scalar
    """This micro-batch's part of the batch's loss."""
    sums: dict[str, Scalar]
    """value_loss: weighted as in the loss. value_tokens, value_clipped: training tokens, and those whose clipped term
    is the larger. returns, returns_squared, residual_squared: token sums, for `explained_variance`."""


def value_objective(
    values: Tokens,
    old_values: Tokens,
    returns: Tokens,
    mask: TokenMask,
    row_weights: Rows,
    *,
    cliprange_value: float | None = 0.2,
) -> ValueObjective:
    """½ Σ_b w_b Σ_t max((V − R)², (clip(V, V_old ± cliprange_value) − R)²); None = plain squared error.

    `values` carries the gradient; `old_values` and `returns` are detached. Multiply by vf_coef where it is added to
    the policy's loss.
    """
    value, old, target = keep(values, mask), keep(old_values, mask), keep(returns, mask)
    plain = (value - target).square()
    larger, clipped = plain, mask & False
    if cliprange_value is not None:
        bounded = value.clamp(old - cliprange_value, old + cliprange_value)
        other = (bounded - target).square()
        larger, clipped = plain.maximum(other), mask & (other > plain)
    loss = 0.5 * (row_weights.to(larger.dtype) * keep(larger, mask).sum(-1)).sum()
    residual = (target - value).detach().double()
    return ValueObjective(
        loss=loss,
        sums={
            "value_loss": loss.detach().double(),
            "value_tokens": mask.double().sum(),
            "value_clipped": clipped.double().sum(),
            "returns": target.double().sum(),
            "returns_squared": target.double().square().sum(),
            "residual_squared": residual.square().sum(),
            "residual": residual.sum(),
        },
    )


def explained_variance(sums: dict[str, float]) -> float | None:
    """1 − var(R − V)/var(R) over the batch's training tokens; None where the returns do not vary."""
    tokens = sums["value_tokens"]
    if tokens == 0:
        return None
    of_returns = sums["returns_squared"] / tokens - (sums["returns"] / tokens) ** 2
    of_residual = sums["residual_squared"] / tokens - (sums["residual"] / tokens) ** 2
    return 1 - of_residual / of_returns if of_returns > 0 else None
