"""From journal and config to what MLflow takes: names, metrics and parameters within its limits, nothing silently cut.

Limits of MLflow 3.17: names of 250 characters out of letters, digits and `/ _ . -` (colon and blank are refused on some
systems), which are normalized paths; parameters of 6,000 characters, written once; 1,000 metrics a batch.
"""

import hashlib
import json
import math
import posixpath
import re
from collections.abc import Iterator
from typing import Any, cast

NAME_LENGTH = 250
VALUE_LENGTH = 6000
_HASH = 8
_ALLOWED = re.compile(r"[A-Za-z0-9_./-]+")


def clean_name(name: str) -> str:
    """`name` if MLflow takes it; else what it takes of it, ending in a hash of the whole, so that no two names meet."""
    if _ALLOWED.fullmatch(name) and len(name) <= NAME_LENGTH and _is_plain_path(name) and not _looks_cleaned(name):
        return name
    kept = re.sub(r"[^A-Za-z0-9_./-]+", "_", name)
    kept = posixpath.normpath(f"/{kept}").strip("/")[: NAME_LENGTH - _HASH - 2]
    return f"{kept or 'name'}--{digest(name)}"


def clean_names(names: Iterator[str] | list[str]) -> dict[str, str]:
    """The names that had to be changed: what MLflow shows to what was meant."""
    return {cleaned: name for name in names if (cleaned := clean_name(name)) != name}


def flatten(config: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted leaves of a config as text; lists and empty sections are leaves."""
    leaves: dict[str, str] = {}
    for name, value in config.items():
        if isinstance(value, dict) and value:
            leaves |= flatten(cast("dict[str, Any]", value), f"{prefix}{name}.")
        else:
            leaves[f"{prefix}{name}"] = value if isinstance(value, str) and value else json.dumps(value)
    return leaves


def parameter_value(value: str) -> str:
    """`value`, or its hash and length where MLflow would cut it; the whole is in the run's config artifact."""
    if len(value) <= VALUE_LENGTH:
        return value
    return f"sha256:{hashlib.sha256(value.encode()).hexdigest()} ({len(value)} characters, whole in run.yaml)"


def numbers(values: dict[str, Any]) -> tuple[dict[str, float], int]:
    """What of a journal line is a finite number, by MLflow's name, and how many values are not."""
    finite = {
        clean_name(name): float(value)
        for name, value in values.items()
        if isinstance(value, bool | int | float) and math.isfinite(value)
    }
    return finite, len(values) - len(finite)


def digest(text: str) -> str:
    """A short hash, for names."""
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH]


def _is_plain_path(name: str) -> bool:
    return posixpath.normpath(name) == name and not name.startswith(("/", "..")) and name != "."


def _looks_cleaned(name: str) -> bool:
    # Else a name that is by chance another one's cleaned form would meet it.
    return re.search(rf"--[0-9a-f]{{{_HASH}}}$", name) is not None
