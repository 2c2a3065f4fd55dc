"""What is trained beside the policy: the critic of PPO, the implicit PRM of PRIME."""

from typing import Annotated

from pydantic import Field

from papo.engines.settings import OptimizerSettings
from schemas.section import OPERATIONAL, Section


class CriticConfig(Section):
    """A model of its own that says what a completion will be worth, token by token."""

    path: Annotated[str | None, OPERATIONAL] = None
    """Model folder whose backbone it starts from; null: the first policy's."""
    optimizer: OptimizerSettings = OptimizerSettings(learning_rate=1e-5)
    """AdamW and its schedule, by its own count of optimizer steps."""
    warmup_iterations: int = Field(default=0, ge=0)
    """First iterations in which only the critic is trained."""


class ImplicitPrmConfig(Section):
    """A model of its own whose log-ratio to a reference is the process reward."""

    path: Annotated[str | None, OPERATIONAL] = None
    """Model folder that it starts from, with the policy's tokenizer; null: the first policy."""
    optimizer: OptimizerSettings = OptimizerSettings(max_grad_norm=10.0)
    """AdamW and its schedule (PRIME: 1e-6, clipped at 10), by its own count of optimizer steps."""
