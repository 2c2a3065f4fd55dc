"""How the weight of a KL term moves from iteration to iteration, as pure functions of what was measured."""

from typing import Literal

from papo.needs import Needs
from papo.values import value


@value
class FixedKl:
    """The coefficient stays as it is."""

    kind: Literal["fixed"] = "fixed"

    @property
    def needs(self) -> Needs:
        return Needs()

    def next_coef(self, coef: float, *, kl: float, steps: int) -> float:
        """The coefficient of the next iteration."""
        return coef


@value
class AdaptiveKl:
    """coef ← coef·(1 + clip(kl/target − 1, ±0.2)·steps/horizon)  (Ziegler et al., arXiv:1909.08593)."""

    kind: Literal["adaptive"] = "adaptive"
    target_kl: float = 0.1
    """KL that is aimed at, in nats, in the unit that is measured (verl: 0.1 a token)."""
    horizon: int = 10_000
    """Steps over which an error of 20 % or more changes the coefficient by 20 %."""

    def __post_init__(self) -> None:
        if not self.target_kl > 0:
            raise ValueError(f"target_kl is {self.target_kl}: use a positive number of nats.")
        if self.horizon < 1:
            raise ValueError(f"horizon is {self.horizon}: use 1 step or more.")

    @property
    def needs(self) -> Needs:
        return Needs(kl_control=True)

    def next_coef(self, coef: float, *, kl: float, steps: int) -> float:
        """The coefficient of the next iteration, after `steps` (rollouts, in verl) at a mean KL of `kl`."""
        error = min(max(kl / self.target_kl - 1, -0.2), 0.2)
        return coef * (1 + error * steps / self.horizon)


KlController = FixedKl | AdaptiveKl
