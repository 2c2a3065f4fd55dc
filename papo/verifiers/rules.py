"""The conventions of a comparison, and what it asks of an engine."""

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from papo.verifiers.syntax import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The conventions that a comparison keeps."""

    percent: Literal["value", "unit"] = "value"
    tolerance: float = 0.0
    relative_tolerance: float = 0.0


@runtime_checkable
class Engine(Protocol):
    """Decides what form does not."""

    def equal(self, gold: Node, answer: Node) -> bool: ...

    def close(self, gold: Node, answer: Node, *, tolerance: float, relative: float) -> bool: ...

    def proportional(self, gold: Node, answer: Node, *, positive: bool) -> bool: ...

    def second_opinion(self, gold: str, answer: str) -> bool: ...
