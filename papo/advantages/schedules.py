"""Weights that change over the iterations, each a pure function of the iteration's number."""

from math import inf
from typing import Literal

from papo.values import value


@value
class RisingLambda:
    """λ from `start` to its final value, so that the outcome leads first and the process score refines later."""

    shape: Literal["linear", "step"] = "linear"
    """linear: a straight line over `iterations`; step: `start` until then, the final value from then on."""
    start: float = 0.1
    """λ in iteration 0."""
    iterations: int = 100
    """Iteration in which the final value is reached."""

    def __post_init__(self) -> None:
        if not 0 <= self.start < inf:
            raise ValueError(f"start of the lambda_process_schedule is {self.start}: use 0 or a positive weight.")
        if self.iterations < 1:
            raise ValueError(f"iterations of the lambda_process_schedule is {self.iterations}: use 1 or more.")

    def at(self, iteration: int, *, final: float) -> float:
        """λ in an iteration, counted from 0."""
        if iteration >= self.iterations:
            return final
        if self.shape == "step":
            return self.start
        return self.start + (final - self.start) * iteration / self.iterations
