"""Frozen values: what an algorithm, a loss, a reward or a scorer is made of."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")
LATER = {"later": True}
"""Metadata of a field that came after the first runs: at its default it is left out of a config's identity, so that
runs which never heard of it keep their hashes."""

OPERATIONAL = {"operational": True}
"""Metadata of a field that says where something is, not what: it is left out of a config's identity."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def value(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, slotted, keyword-only dataclass in which an unknown field is an error to pydantic."""
    # Read by pydantic when the class is a field of the run config; a plain dict keeps pydantic out of `papo`.
    cls.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]  # a marker pydantic looks up by name
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)
