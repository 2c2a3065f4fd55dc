"""Run ids: one rule for the names that become folders, wherever they come from."""

import re
from pathlib import Path

from papo.errors import ConfigError

LONGEST = 100
EXAMPLE = "my-run-2"
_RULE = (
    f"A run's id is the name of its folder: 1 to {LONGEST} letters (a-z, A-Z), digits, '.', '_' or '-', of which the "
    "first is a letter or a digit"
)
_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST - 1}}}")
_TAKEN = ("mlartifacts", "mlflow.db")
"""What MLflow keeps beside the runs."""


def checked_run_id(run_id: str, *, source: str = "") -> str:
    """`run_id`, if it may name a run's folder. Raises ConfigError, which says the rule; `source`: where a bad one comes
    from, for the error."""
    if _ID.fullmatch(run_id) and run_id.lower() not in _TAKEN:
        return run_id
    if run_id.lower() in _TAKEN:
        why = f"{_RULE}. {run_id!r} is what MLflow's own files beside the runs are called: use another one"
    else:
        why = f"{_RULE}, such as {_like(run_id)!r}"
    elsewhere = " A run in another folder is named by that folder and its id: --runs FOLDER." if "/" in run_id else ""
    raise ConfigError(f"{_shown(run_id)} is no run id{source}. {why}.{elsewhere}")


def run_id_of(config: str | Path | None, run_id: str | None) -> str:
    """The id that is given, else the config file's name without its ending. Raises ConfigError for one that is none."""
    if run_id is not None:
        return checked_run_id(run_id)
    stem = Path(config or "").stem
    return checked_run_id(stem, source=f" (it is the name of {config}; give another one by --run-id)")


def _like(run_id: str) -> str:
    """An id that is as near to a bad one as may be."""
    near = re.sub(r"[^A-Za-z0-9._-]+", "-", run_id.rpartition("/")[2]).lstrip("._-")[:LONGEST].rstrip("-")
    return near if _ID.fullmatch(near) and near.lower() not in _TAKEN else EXAMPLE


def _shown(run_id: str) -> str:
    return repr(run_id if len(run_id) <= LONGEST else f"{run_id[:40]}…") + (
        f" ({len(run_id)} characters)" if len(run_id) > LONGEST else ""
    )
