"""The shape of a config: which fields a section has, what each holds, and which member of a union a value is for.

A section is a pydantic model or a frozen dataclass of `papo`; both are read through the same functions.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic_core import PydanticUndefined, to_jsonable_python

REQUIRED = object()
"""Stands where a field has no default."""


@dataclass(frozen=True)
class Entry:
    """One field of a section."""

    annotation: Any
    default: Any

    @property
    def sections(self) -> list[type]:
        """The sections that the field may hold; several: told apart by their `kind`."""
        return _sections(self.annotation)

    @property
    def of_many(self) -> "Entry | None":
        """The field's element, where it holds a sequence of sections."""
        inner = _plain(self.annotation)
        if get_origin(inner) is not tuple:
            return None
        element = Entry(get_args(inner)[0], REQUIRED)
        return element if element.sections else None


def is_section(kind: Any) -> bool:
    """Whether a type is a section: a model or a dataclass."""
    return isinstance(kind, type) and (
        issubclass(kind, BaseModel) or hasattr(cast("Any", kind), "__dataclass_fields__")
    )


def entries_of(section: type) -> dict[str, Entry]:
    """The fields of a section, by name."""
    hints = get_type_hints(section, include_extras=True)
    return {name: Entry(hints[name], default) for name, default in _defaults(section).items()}


def kind_of(section: type) -> str | None:
    """What a section's `kind` must say; None where it has none."""
    default = _defaults(section).get("kind")
    return default if isinstance(default, str) else None


def chosen(members: list[type], value: Mapping[str, Any]) -> type | None:
    """The member that `value` is for: the only one, or the one of its `kind`."""
    if len(members) == 1:
        return members[0]
    return next((member for member in members if kind_of(member) == value.get("kind", REQUIRED)), None)


def walk(kind: type, raw: Any, place: Iterable[str | int]) -> list[tuple[Entry | None, Any]]:
    """The entry and the value at each step of the way from `raw`, a value of `kind`, to `place`; None where the types
    know of none."""
    steps: list[tuple[Entry | None, Any]] = []
    section: type | None = kind
    entry: Entry | None = None
    for part in place:
        if isinstance(part, int):
            entry = entry.of_many if entry else None
            raw = cast("list[Any]", raw)[part]
        else:
            entry = entries_of(section).get(part) if section else None
            raw = cast("dict[str, Any]", raw).get(part) if isinstance(raw, dict) else None
        section = chosen(entry.sections, cast("dict[str, Any]", raw)) if entry and isinstance(raw, dict) else None
        steps.append((entry, cast("Any", raw)))
    return steps


def plain(value: Any) -> Any:
    """A section's value as a file would spell it."""
    return to_jsonable_python(value)


def stand_in(annotation: Any) -> Any:
    """A value for a required field that is faulty or missing, so that the rest of a config can still be checked."""
    inner = _plain(annotation)
    if members := _sections(inner):
        kind = {"kind": kind_of(members[0])} if kind_of(members[0]) else {}
        entries = {name: entry for name, entry in entries_of(members[0]).items() if entry.default is REQUIRED}
        return kind | {name: stand_in(entry.annotation) for name, entry in entries.items()}
    if get_origin(inner) is Literal:
        return get_args(inner)[0]
    if get_origin(inner) is tuple:
        return [stand_in(get_args(inner)[0])]
    return {int: 1, float: 1.0, str: "?", bool: False}.get(inner)


def _defaults(section: type) -> dict[str, Any]:
    if issubclass(section, BaseModel):
        found = {name: info.get_default(call_default_factory=True) for name, info in section.model_fields.items()}
        return {name: REQUIRED if default is PydanticUndefined else default for name, default in found.items()}
    return {field.name: _default(field) for field in dataclasses.fields(cast("Any", section))}


def _default(field: "dataclasses.Field[Any]") -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return REQUIRED if field.default is dataclasses.MISSING else field.default


def _plain(annotation: Any) -> Any:
    """`annotation` without its marks and without None."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if _is_union(annotation):
        left = [member for member in get_args(annotation) if member is not type(None)]
        return _plain(left[0]) if len(left) == 1 else annotation
    return annotation


def _sections(annotation: Any) -> list[type]:
    inner = _plain(annotation)
    if _is_union(inner):
        return [section for member in get_args(inner) for section in _sections(member)]
    return [cast("type", inner)] if is_section(inner) else []


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType)
