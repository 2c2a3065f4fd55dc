"""What is wrong with a config: every fault of its fields at once, each with its value, the reason and the way out."""

import json
import math
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Generic, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from schemas.shape import REQUIRED, Entry, chosen, entries_of, kind_of, plain, stand_in

T = TypeVar("T")
Path = tuple[str | int, ...]
_ROUNDS = 12
"""Rounds of finding and leaving out; a section's own checks only run once its fields are right."""
_WANTED = {
    "int_type": "a whole number", "int_from_float": "a whole number", "float_type": "a number",
    "bool_type": "true or false", "string_type": "text in quotes", "tuple_type": "a list", "dict_type": "a mapping",
    "model_type": "a section with fields", "dataclass_type": "a section with fields",
    "model_attributes_type": "a section with fields",
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One fault. `path` is the field at fault and `others` those that it is at odds with."""

    path: Path
    text: str
    others: tuple[Path, ...] = ()

    def __str__(self) -> str:
        return f"{dotted(self.path)} {self.text}" if self.path else self.text

    def touches(self, paths: set[Path]) -> bool:
        """Whether it is about one of `paths`, something within it or something around it."""
        mine = (self.path, *self.others)
        return any(a[: len(b)] == b or b[: len(a)] == a for a in mine for b in paths)


@dataclass
class Checked(Generic[T]):
    """A config as far as it is right: faulty fields have their default or a stand-in."""

    config: T | None
    """None where not even that can be built."""
    faults: list[Fault] = field(default_factory=list[Fault])

    @property
    def faulty(self) -> set[Path]:
        return {fault.path for fault in self.faults}


def check_fields(raw: dict[str, Any], kind: type[T]) -> Checked[T]:
    """All faults of the fields of `raw`, with no value coerced, and what is left of it as a `kind`."""
    found: list[Fault] = []
    left = _structured(kind, raw, (), found)
    adapter = TypeAdapter(kind)
    for _ in range(_ROUNDS):
        try:
            return Checked(adapter.validate_json(json.dumps(left), strict=True), found)
        except ValidationError as error:
            seen = {fault.path for fault in found}
            fresh = [fault for fault in _merged(error, kind, left) if fault.path not in seen]
        if not fresh:
            break
        found += fresh
        for fault in fresh:
            _leave_out(left, kind, fault.path)
    return Checked(None, found)


def dotted(path: Path) -> str:
    """sampling.temperature, phases[0].share"""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def shown(value: Any) -> str:
    """A value as a file spells it, cut to a line."""
    spelled = json.dumps(value, ensure_ascii=False, default=str)
    return spelled if len(spelled) <= 80 else spelled[:77] + "…"


def nearest(name: str, known: list[str]) -> str:
    """The way out of a wrong name."""
    close = get_close_matches(name, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"use one of {', '.join(known)}."


def _structured(section: type, raw: dict[Any, Any], at: Path, found: list[Fault]) -> dict[str, Any]:
    """`raw` with what has no place in `section` taken out, and stand-ins for what must be there."""
    entries = entries_of(section)
    left: dict[str, Any] = {}
    faulty: set[str] = set()
    for name, value in raw.items():
        path = (*at, str(name))
        before = len(found)
        if name not in entries:
            found.append(Fault(path, f"is no field (its value is {shown(value)}): {nearest(str(name), list(entries))}"))
            continue
        kept = _held(entries[name], value, path, found)
        if len(found) == before or kept is not REQUIRED:
            left[name] = kept
        faulty.add(name)
    for name, entry in entries.items():
        if entry.default is REQUIRED and name not in left:
            if name not in faulty:
                found.append(Fault((*at, name), f"is missing: give it {_wanted(entry)}."))
            left[name] = stand_in(entry.annotation)
    return left


def _held(entry: Entry, value: Any, path: Path, found: list[Fault]) -> Any:
    """What is left of a field's value; REQUIRED when nothing is."""
    if not _finite(value):
        found.append(Fault(path, f"is {shown(value)}, which is not finite: use a plain number."))
        return REQUIRED
    many = entry.of_many
    if many is not None and isinstance(value, list):
        items = [_held(many, item, (*path, index), found) for index, item in enumerate(cast("list[Any]", value))]
        return [stand_in(many.annotation) if item is REQUIRED else item for item in items]
    members = entry.sections
    if not members or value is None:
        return value
    if not isinstance(value, dict):
        found.append(Fault(path, f"is {shown(value)}, which is no section: give it {_wanted(entry)}."))
        return REQUIRED
    fields = cast("dict[str, Any]", value)
    member = chosen(members, fields)
    if member is None:
        known = [kind for each in members if (kind := kind_of(each))]
        if "kind" in fields:
            said = fields["kind"]
            hint = nearest(said, known) if isinstance(said, str) else ""
            found.append(Fault((*path, "kind"), f"is {shown(said)}, which is unknown: use one of {', '.join(known)}"
                               + (f"; {hint}" if hint.startswith("did") else ".")))  # fmt: skip
        else:
            found.append(
                Fault((*path, "kind"), f"is missing: it says what this section is, one of {', '.join(known)}.")
            )
        return REQUIRED
    return _structured(member, fields, path, found)


def _finite(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_finite, cast("list[Any]", value)))
    return not isinstance(value, float) or math.isfinite(value)


def _merged(error: ValidationError, kind: type, raw: dict[str, Any]) -> list[Fault]:
    """One fault a field: a plain union gives an error for each of its members."""
    reasons: dict[Path, list[str]] = {}
    for detail in error.errors(include_url=False):
        path = _path(kind, raw, detail["loc"])
        if path is not None:
            reasons.setdefault(path, []).append(_reason(detail))
    faults: list[Fault] = []
    for path, texts in reasons.items():
        value, entry = _value_at(raw, path), _entry_at(kind, raw, path)
        if entry is None or (entry.sections and isinstance(value, dict)):
            faults.append(Fault(path, f"does not fit together: {' '.join(dict.fromkeys(texts))}"))
        else:
            default = "" if entry.default is REQUIRED else f" (default: {shown(plain(entry.default))})"
            faults.append(Fault(path, f"is {shown(value)}: {' or '.join(dict.fromkeys(texts))}{default}."))
    return faults


def _reason(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _WANTED:
        return f"use {_WANTED[kind]}"
    match kind:
        case "greater_than_equal":
            return f"use {context['ge']} or more"
        case "greater_than":
            return f"use a number above {context['gt']}"
        case "less_than_equal":
            return f"use {context['le']} or less"
        case "less_than":
            return f"use a number below {context['lt']}"
        case "literal_error":
            return f"use one of {context['expected']}".replace(" or ", ", ").replace("'", "")
        case "value_error":
            return str(context["error"])
        case _:
            return detail["msg"].replace("Input should ", "it must ").replace("Value should ", "it must ")


def _wanted(entry: Entry) -> str:
    members = entry.sections
    if not members:
        return "a value"
    kinds = [kind for member in members if (kind := kind_of(member))]
    if len(members) > 1 or kinds:
        return f"a section with kind: {' or '.join(kinds)}"
    return f"a section with fields such as {', '.join(list(entries_of(members[0]))[:4])}"


def _path(kind: type, raw: Any, loc: tuple[str | int, ...]) -> Path | None:
    """Where an error is, without the tags of unions; None for a member of a union that the value is not for."""
    path: list[str | int] = []
    section: type | None = kind
    parts = list(loc)
    while parts and section is not None:
        part = parts.pop(0)
        entry = entries_of(section).get(str(part))
        path.append(part)
        if entry is None:
            break
        raw = cast("dict[str, Any]", raw).get(str(part)) if isinstance(raw, dict) else None
        if (many := entry.of_many) is not None and parts and isinstance(parts[0], int):
            index = parts.pop(0)
            path.append(index)
            entry, raw = many, cast("list[Any]", raw)[int(index)]
        members = entry.sections
        section = chosen(members, cast("dict[str, Any]", raw)) if members and isinstance(raw, dict) else None
        if (
            section is not None
            and len(members) > 1
            and parts
            and parts.pop(0) not in (section.__name__, kind_of(section))
        ):
            return None
    return tuple(path)


def _entry_at(kind: type, raw: Any, path: Path) -> Entry | None:
    entry: Entry | None = None
    section: type | None = kind
    for part in path:
        if isinstance(part, int):
            entry = entry.of_many if entry else None
            raw = raw[part]
        else:
            entry = entries_of(section).get(part) if section else None
            raw = raw.get(part) if isinstance(raw, dict) else None
        section = chosen(entry.sections, raw) if entry and entry.sections and isinstance(raw, dict) else None
    return entry


def _value_at(raw: Any, path: Path) -> Any:
    for part in path:
        raw = raw[part] if isinstance(part, int) else raw.get(part)
    return raw


def _leave_out(raw: dict[str, Any], kind: type, path: Path) -> None:
    """Put a field's default, or a stand-in, in the place of its value."""
    if not path:
        return
    entry = _entry_at(kind, raw, path)
    holder = _value_at(raw, path[:-1])
    if entry is None or entry.default is not REQUIRED:
        holder.pop(path[-1], None)
    else:
        holder[path[-1]] = stand_in(entry.annotation)
