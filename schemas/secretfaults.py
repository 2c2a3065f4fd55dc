"""Secrets in a config, which is kept in the run, copied to MLflow and shown: each belongs into the environment."""

from collections.abc import Iterator
from typing import Any, cast

from papo.masking import secret_in
from schemas.config import RunConfig
from schemas.faults import Fault, Field
from schemas.sft import SftConfig

_TEXTS: tuple[Field, ...] = (("data", "prompt"), ("sampling", "stop_strings"), ("sampling", "keep_special_tokens"))
"""Fields that hold what a model reads."""
_TRACKING: Field = ("tracking", "mlflow")


def secret_faults(config: RunConfig | SftConfig) -> list[Fault]:
    """Fields that hold a password or a key. The fault names the field and never its value."""
    found = [
        Fault(place, f"holds {kind}, and a config is kept and shown in plain text: {_way_out(place, value)}.")
        for place, value in _leaves(config.model_dump(mode="json"), ())
        if not any(place[: len(text)] == text for text in _TEXTS) and (kind := secret_in(value)) is not None
    ]
    environment = [
        (place, value)
        for place, value in _leaves(config.model_dump(mode="json"), ())
        if str(place[-1]).endswith("_env") and not value.isidentifier()
    ]
    return found + [
        Fault(place, "is no name of an environment variable: export the key, and name the variable.")
        for place, _ in environment
        if not any(fault.field == place for fault in found)
    ]


def _way_out(place: Field, value: str) -> str:
    if place == _TRACKING and value.startswith("http"):
        return "leave it out, and set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD (or MLFLOW_TRACKING_TOKEN)"
    if place == _TRACKING:
        return "leave it out, and put it where the database's own client looks for it (PGPASSFILE, an option file)"
    return "leave it out, and name the environment variable that holds it where there is a field for that (api_key_env)"


def _leaves(value: Any, place: Field) -> Iterator[tuple[Field, str]]:
    """Every text of a config with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from _leaves(inner, (*place, name))
    elif isinstance(value, list):
        for index, inner in enumerate(cast("list[Any]", value)):
            yield from _leaves(inner, (*place, index))
