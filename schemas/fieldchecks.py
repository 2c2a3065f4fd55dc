"""Every fault of a config's fields at once, and what is left of the config for the checks across fields.

Three passes. The structure (names, kinds of unions, what is missing) is held against the types by hand, so that a
union never reports the members that a value is not for. pydantic then judges the values, strictly: nothing is coerced.
What is at fault is left out, and pydantic asked again, for a section checks itself only once its fields are right.
"""

import json
import math
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from schemas.faults import Fault, Field, nearest, shown
from schemas.shape import REQUIRED, Entry, chosen, entries_of, kind_of, plain, stand_in, walk

T = TypeVar("T")
_ROUNDS = 12
_WANTED = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text, in quotes where it could be read as something else",
    "tuple": "a list",
    "dict": "a mapping",
    "model": "a section with fields",
    "dataclass": "a section with fields",
}
_BOUNDS = {
    "greater_than_equal": "use {ge} or more",
    "greater_than": "use a number above {gt}",
    "less_than_equal": "use {le} or less",
    "less_than": "use a number below {lt}",
    "value_error": "{error}",
}


@dataclass
class Checked(Generic[T]):
    """A config as far as it is right: faulty fields have their default or a stand-in."""

    config: T | None
    """None where not even that can be built."""
    faults: list[Fault] = field(default_factory=list[Fault])


def check_fields(raw: dict[str, Any], kind: type[T]) -> Checked[T]:
    """All faults of the fields of `raw`, and what is left of it as a `kind`."""
    found: list[Fault] = []
    left = _structured(kind, raw, (), found)
    adapter = TypeAdapter(kind)
    for _ in range(_ROUNDS):
        try:
            return Checked(adapter.validate_json(json.dumps(left), strict=True), found)
        except ValidationError as error:
            seen = {fault.field for fault in found}
            fresh = [fault for fault in _translated(error, kind, left) if fault.field not in seen]
        if not fresh:
            break
        found += fresh
        for fault in fresh:
            _leave_out(left, kind, fault.field)
    return Checked(None, found)


def _structured(section: type, raw: dict[Any, Any], at: Field, found: list[Fault]) -> dict[str, Any]:
    """`raw` without what has no place in `section`, and with stand-ins for what must be there."""
    entries = entries_of(section)
    left: dict[str, Any] = {}
    for name, value in raw.items():
        place = (*at, str(name))
        if name not in entries:
            way_out = nearest(str(name), list(entries))
            found.append(Fault(place, f"is no field (its value is {shown(value)}): {way_out}"))
        elif (kept := _held(entries[name], value, place, found)) is not REQUIRED:
            left[name] = kept
    for name, entry in entries.items():
        if entry.default is REQUIRED and name not in left:
            if name not in raw:
                found.append(Fault((*at, name), f"is missing: give it {_wanted(entry)}."))
            left[name] = stand_in(entry.annotation)
    return left


def _held(entry: Entry, value: Any, place: Field, found: list[Fault]) -> Any:
    """What is left of a field's value; REQUIRED when nothing is."""
    many, members = entry.of_many, entry.sections
    if many is not None and isinstance(value, list):
        items = [_held(many, item, (*place, index), found) for index, item in enumerate(cast("list[Any]", value))]
        return [stand_in(many.annotation) if item is REQUIRED else item for item in items]
    if not members and not _finite(value):
        found.append(Fault(place, f"is {shown(value)}, which is not finite: use a plain number."))
        return REQUIRED
    if not members or value is None:
        return value
    if not isinstance(value, dict):
        found.append(Fault(place, f"is {shown(value)}, which is no section: give it {_wanted(entry)}."))
        return REQUIRED
    fields = cast("dict[str, Any]", value)
    member = chosen(members, fields)
    if member is not None:
        return _structured(member, fields, place, found)
    known = [str(kind_of(each)) for each in members]
    if "kind" in fields:
        text = f"is {shown(fields['kind'])}, which is unknown: use one of {', '.join(known)}."
    else:
        text = f"is missing: it says what this section is, one of {', '.join(known)}."
    found.append(Fault((*place, "kind"), text))
    return REQUIRED


def _finite(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_finite, cast("list[Any]", value)))
    if isinstance(value, dict):
        return all(map(_finite, cast("dict[str, Any]", value).values()))
    return not isinstance(value, float) or math.isfinite(value)


def _wanted(entry: Entry) -> str:
    members = entry.sections
    if not members:
        return "a value"
    kinds = [kind for member in members if (kind := kind_of(member))]
    if kinds:
        return f"a section with kind: {' or '.join(kinds)}"
    return f"a section with fields such as {', '.join(list(entries_of(members[0]))[:4])}"


def _translated(error: ValidationError, kind: type, raw: dict[str, Any]) -> list[Fault]:
    """One fault a field: a plain union gives an error for each of its members."""
    reasons: dict[Field, list[str]] = {}
    for detail in error.errors(include_url=False):
        place = _place(kind, raw, detail["loc"])
        if place is not None:
            reasons.setdefault(place, []).append(_reason(detail))
    return [Fault(place, _sentence(kind, raw, place, list(dict.fromkeys(texts)))) for place, texts in reasons.items()]


def _sentence(kind: type, raw: dict[str, Any], place: Field, reasons: list[str]) -> str:
    entry, value = walk(kind, raw, place)[-1] if place else (None, raw)
    if entry is None or (entry.sections and isinstance(value, dict)):
        return f"does not fit together: {' '.join(reasons)}"
    default = "" if entry.default is REQUIRED else f" (default: {shown(plain(entry.default))})"
    return f"is {shown(value)}: {' or '.join(reasons).replace(' or use ', ' or ')}{default}."


def _reason(detail: ErrorDetails) -> str:
    code, context = detail["type"], detail.get("ctx", {})
    if code in _BOUNDS:
        return _BOUNDS[code].format(**context)
    if code == "literal_error":
        return f"use one of {context['expected']}".replace(" or ", ", ").replace("'", "")
    if (wanted := _WANTED.get(code.split("_")[0])) and code.endswith(("_type", "_from_float")):
        return f"use {wanted}"
    return detail["msg"].replace("Input should ", "it must ").replace("Value should ", "it must ")


def _place(kind: type, raw: dict[str, Any], loc: tuple[str | int, ...]) -> Field | None:
    """Where an error is, without the tags of unions; None for a member of a union that the value is not for."""
    place: Field = ()
    parts = list(loc)
    while parts:
        place = (*place, parts.pop(0))
        entry, value = walk(kind, raw, place)[-1]
        if entry is None:
            break
        if entry.of_many is not None:
            continue
        member = chosen(entry.sections, cast("dict[str, Any]", value)) if isinstance(value, dict) else None
        if member is None:
            break
        tagged = len(entry.sections) > 1 and bool(parts)
        if tagged and parts.pop(0) not in (member.__name__, kind_of(member)):
            return None
    return place


def _leave_out(raw: dict[str, Any], kind: type, place: Field) -> None:
    """Put a field's default, or a stand-in, in the place of its value."""
    if not place:
        return
    entry, _ = walk(kind, raw, place)[-1]
    holder: Any = walk(kind, raw, place[:-1])[-1][1] if place[:-1] else raw
    if entry is None or entry.default is not REQUIRED:
        holder.pop(place[-1], None)
    else:
        holder[place[-1]] = stand_in(entry.annotation)
