"""Running programs that nobody trusts: isolated, bounded, ended, and judged by what they return."""

from papo.sandbox.box import Box, run
from papo.sandbox.isolation import chosen
from papo.sandbox.limits import Isolation, Limits, Outcome, SandboxError

__all__ = ["Box", "Isolation", "Limits", "Outcome", "SandboxError", "chosen", "run"]
