"""From a config file and `--set a.b=c` to a valid config, or to one error that lists every fault."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, overload

from papo.errors import ConfigError
from schemas.config import RunConfig
from schemas.crosschecks import cross_faults, warnings_of
from schemas.faults import Fault, nearest, report, shown
from schemas.fieldchecks import check_fields
from schemas.filechecks import file_faults, resolve
from schemas.modelchecks import model_faults, model_warnings
from schemas.rewardmodels import reward_model_faults
from schemas.secretfaults import secret_faults
from schemas.sft import SftConfig
from schemas.shape import chosen, entries_of, is_section, kind_of, plain
from schemas.yamltext import NotYaml, read_yaml

T = TypeVar("T", RunConfig, SftConfig)

__all__ = ["cross_faults", "file_faults", "load_config", "model_warnings", "overridden", "resolve", "warnings_of"]


@overload
def load_config(path: Path, overrides: Sequence[str] = ()) -> RunConfig: ...
@overload
def load_config(path: Path, overrides: Sequence[str] = (), *, kind: type[T]) -> T: ...
def load_config(path: Path, overrides: Sequence[str] = (), *, kind: type[Any] = RunConfig) -> Any:
    """The config in the YAML file `path` with `overrides` ("sampling.temperature=0.7") put over it.

    A section that the file gives in part keeps its other defaults, those of the default algorithm (`PAPO`) included.
    Relative paths in it are looked for in the file's folder first, then in the working folder (`resolve`).
    Raises ConfigError with all faults at once: of the YAML, the fields, their combination, and the files they name.
    """
    try:
        raw, twice = read_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"The config {path} cannot be read ({error.strerror}). Check the path.") from None
    except (UnicodeDecodeError, NotYaml) as error:
        raise ConfigError(f"The config {path} cannot be read: {error}") from None
    if not isinstance(raw, dict):
        raise ConfigError(
            f"The config {path} is {'empty' if raw is None else shown(raw)}: it must be fields with values, such as\n"
            f"{', '.join(list(entries_of(kind))[:6])}."
        )
    faults = [Fault((), text) for text in twice]
    return _built(cast("dict[Any, Any]", raw), kind, overrides, faults, base=path.parent, named=str(path))


def overridden(config: T, overrides: Sequence[str], *, named: str) -> T:
    """`config` with `overrides` put over it, under the same checks; files are not looked for, for a run holds its own
    copies. `named`: what an error says the config is. Raises ConfigError with all faults."""
    return _built(plain(config), type(config), overrides, [], base=None, named=named)


def _built(
    raw: dict[Any, Any], kind: type[T], overrides: Sequence[str], faults: list[Fault], *, base: Path | None, named: str
) -> T:
    filled = _filled(kind, raw)
    faults += [fault for text in overrides if (fault := _override(filled, kind, text))]
    checked = check_fields(filled, kind)
    # Where the kind is in doubt, so is all of the section.
    faulty = {fault.field[:-1] if fault.field[-1:] == ("kind",) else fault.field for fault in checked.faults}
    faults += checked.faults
    if checked.config is not None:
        found = cross_faults(checked.config) if isinstance(checked.config, RunConfig) else []
        found += file_faults(checked.config, base) if base is not None else []
        if base is not None and isinstance(checked.config, RunConfig):
            found += model_faults(checked.config, base)
            found += reward_model_faults(checked.config, base)
        found += secret_faults(checked.config)
        faults += [fault for fault in found if not fault.touches(faulty)]
    if faults or checked.config is None:
        raise ConfigError(report(faults, " ".join([named, *(f"--set {text}" for text in overrides)])))
    return checked.config


def _filled(kind: type, raw: dict[Any, Any]) -> dict[str, Any]:
    """`raw` with the parts that its sections leave out taken from the config's defaults for these sections."""
    entries = entries_of(kind)
    usual = {name: plain(entry.default) for name, entry in entries.items() if is_section(type(entry.default))}
    return {name: _merged(value, usual.get(name)) for name, value in raw.items()}


def _merged(value: Any, default: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(default, dict):
        return cast("Any", value)
    given, usual = cast("dict[str, Any]", value), cast("dict[str, Any]", default)
    if given.get("kind", usual.get("kind")) != usual.get("kind"):
        return given
    return usual | {name: _merged(inner, usual.get(name)) for name, inner in given.items()}


def _override(raw: dict[str, Any], kind: type, text: str) -> Fault | None:
    """Put one `a.b=c` into `raw`, making the sections on the way."""
    name, equals, spelled = text.partition("=")
    parts = name.strip().split(".")
    if not equals or not all(parts):
        return Fault((), f"--set {text} is not of the form a.b=c, such as sampling.temperature=0.7.")
    try:
        value, _ = read_yaml(spelled)
    except NotYaml as error:
        return Fault((), f"--set {text}: {error}")
    try:
        holder, members = _descended(raw, kind, parts)
    except _NoField as fault:
        return Fault((), f"--set {text}: {fault}")
    if parts[-1] == "kind":
        _drop_fields_of_old_kind(holder, members, value)
    holder[parts[-1]] = value
    return None


class _NoField(Exception):
    """A name on the way is none of a field."""


def _descended(raw: dict[str, Any], kind: type, parts: list[str]) -> tuple[dict[str, Any], list[type]]:
    """The mapping that holds the last of `parts`, and the sections that it may be."""
    members = [kind]
    for depth, part in enumerate(parts):
        section = chosen(members, raw)
        known = entries_of(section) if section else {}
        if section is not None and part not in known:
            within = f" of {'.'.join(parts[:depth])}" if depth else ""
            raise _NoField(f"{part} is no field{within}: {nearest(part, list(known))}")
        if depth == len(parts) - 1:
            break
        # A union whose kind is not set yet takes any field: what does not fit is found with all other faults.
        entry = known.get(part)
        members = entry.sections if entry else []
        if raw.get(part) is None:
            raw[part] = plain(entry.default) if entry and is_section(type(entry.default)) else {}
        if not isinstance(raw[part], dict) or not members:
            raise _NoField(f"{'.'.join(parts[: depth + 1])} is {shown(raw[part])}, no section with fields of its own.")
        raw = raw[part]
    return raw, members


def _drop_fields_of_old_kind(holder: dict[str, Any], members: list[type], kind: Any) -> None:
    member = next((member for member in members if kind_of(member) == kind), None)
    if member is not None:
        for name in [name for name in holder if name not in entries_of(member)]:
            del holder[name]
