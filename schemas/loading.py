"""From a config file and `--set a.b=c` to a valid config, or to one error that lists every fault."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, overload

from papo.errors import ConfigError
from schemas.config import RunConfig
from schemas.crosschecks import cross_faults, file_faults, resolve, warnings_of
from schemas.faults import Fault, check_fields, nearest, shown
from schemas.sft import SftConfig
from schemas.shape import chosen, entries_of, is_section, kind_of, plain
from schemas.yamltext import NotYaml, read_yaml

T = TypeVar("T", RunConfig, SftConfig)

__all__ = ["cross_faults", "file_faults", "load_config", "overridden", "resolve", "warnings_of"]


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
    for text in overrides:
        if (fault := _override(filled, kind, text)) is not None:
            faults.append(fault)
    checked = check_fields(filled, kind)
    faults += checked.faults
    if checked.config is not None:
        found: list[Fault] = cross_faults(checked.config) if isinstance(checked.config, RunConfig) else []
        if base is not None:
            found += file_faults(checked.config, base)
        faults += [fault for fault in found if not fault.touches(checked.faulty)]
    if faults or checked.config is None:
        raise ConfigError(_report(faults, named, overrides))
    return checked.config


def _report(faults: Sequence[Fault], named: str, overrides: Sequence[str]) -> str:
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    lines = "\n".join(f"  {fault}" for fault in faults)
    over = f" with {' '.join(f'--set {text}' for text in overrides)}" if overrides else ""
    return f"The config has {count}, nothing was started:\n{lines}\nin {named}{over}"


def _filled(kind: type, raw: dict[Any, Any]) -> dict[str, Any]:
    """`raw` with the parts that its sections leave out taken from the config's defaults for these sections."""
    entries = entries_of(kind)
    return {
        name: _merged(value, plain(entries[name].default))
        if name in entries and is_section(type(entries[name].default))
        else value
        for name, value in raw.items()
    }


def _merged(value: Any, default: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(default, dict):
        return value
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
    section: type | None = kind
    members: list[type] = []
    for depth, part in enumerate(parts):
        known = entries_of(section) if section else {}
        unknown_member = section is None and part == "kind"
        if section is not None and part not in known:
            within = f" of {'.'.join(parts[:depth])}" if depth else ""
            return Fault((), f"--set {text}: {part} is no field{within}: {nearest(part, list(known))}")
        if depth == len(parts) - 1:
            if part == "kind" and (unknown_member or members):
                _change_kind(raw, members, value)
            raw[part] = value
            return None
        entry = known.get(part)
        inner = raw.get(part)
        if inner is None:
            usual = plain(entry.default) if entry else None
            inner = raw[part] = usual if isinstance(usual, dict) else {}
        if not isinstance(inner, dict) or (entry is not None and not entry.sections):
            return Fault(
                (),
                f"--set {text}: {'.'.join(parts[: depth + 1])} is {shown(inner)}, which has no field {parts[depth + 1]}.",
            )
        raw = cast("dict[str, Any]", inner)
        members = entry.sections if entry else []
        section = chosen(members, raw) if members else None
    return None


def _change_kind(raw: dict[str, Any], members: list[type], value: Any) -> None:
    """Fields that the section of the new kind does not have go with the old kind."""
    member = next((member for member in members if kind_of(member) == value), None)
    if member is not None and raw.get("kind") != value:
        for name in [name for name in raw if name not in entries_of(member)]:
            del raw[name]
