"""What the sections of a config are made of: frozen and closed models, and the role of each field."""

from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True)
class Role:
    name: Literal["horizon", "operational"]


HORIZON = Role("horizon")
OPERATIONAL = Role("operational")


class Later:
    """Marks an identity field that came after the first runs: at its default it is left out of the identity, so that
    runs which never heard of it keep their hashes."""


LATER = Later()


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def identity_of(section: BaseModel) -> dict[str, Any]:
    """The fields of `section` that decide what is computed, as plain JSON values."""
    dumped = section.model_dump(mode="json")
    return {
        name: _identity(getattr(section, name), dumped[name])
        for name, info in type(section).model_fields.items()
        if not any(isinstance(mark, Role) for mark in info.metadata)
        and not (LATER in info.metadata and getattr(section, name) == info.default)
    }


def _at_default(inner: Any, field: "Field[Any]") -> bool:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return bool(getattr(inner, field.name) == default)


def _left_out(inner: Any, field: "Field[Any]") -> bool:
    return bool(field.metadata.get("operational") or (field.metadata.get("later") and _at_default(inner, field)))


def _identity(inner: Any, dumped: Any) -> Any:
    if isinstance(inner, BaseModel):
        return identity_of(inner)
    if is_dataclass(inner) and isinstance(dumped, dict):
        plain = cast("dict[str, Any]", dumped)
        left = {field.name for field in fields(inner) if _left_out(inner, field)}
        return {name: _identity(getattr(inner, name), value) for name, value in plain.items() if name not in left}
    if isinstance(inner, tuple):
        items = cast("tuple[Any, ...]", inner)
        return [_identity(item, plain) for item, plain in zip(items, dumped, strict=True)]
    return dumped
