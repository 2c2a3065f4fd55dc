"""`papo doctor`: is this installation able to run?"""

import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

from papo.engines.host import EngineHost
from papo.engines.settings import EngineSettings
from papo.errors import EngineError

LIBRARIES = ("torch", "transformers", "deepspeed", "prefect", "mlflow", "pandera", "polars", "pydantic")
NAMES = ("flows", "tasks", "schemas", "papo")
_ROOM = 2 * 1024**3


@dataclass(frozen=True)
class Check:
    name: str
    passed: bool
    found: str
    way_out: str = ""


def examine(runs: Path) -> Iterator[Check]:
    """Each check as it is done, the cheap ones first."""
    yield Check("python", sys.version_info >= (3, 11), platform.python_version(), "papo needs Python 3.11 or newer.")
    for library in LIBRARIES:
        yield _library(library)
    yield _names()
    yield _room(runs)
    yield _engine()


def _library(name: str) -> Check:
    try:
        return Check(name, True, version(name))
    except PackageNotFoundError:
        return Check(name, False, "not installed", "Run make setup, or pip install -e . -c constraints.txt.")


def _names() -> Check:
    owners = {name: sorted(set(packages_distributions().get(name, []))) for name in NAMES}
    foreign = {name: [owner for owner in found if owner != "papo"] for name, found in owners.items()}
    taken = {name: found for name, found in foreign.items() if found}
    return Check(
        "import names",
        not taken,
        "flows, tasks, schemas and papo are this project's" if not taken else f"also provided by others: {taken}",
        "Uninstall the other distributions: Python would import theirs instead of papo's.",
    )


def _room(runs: Path) -> Check:
    folder = next(path for path in (runs.absolute(), *runs.absolute().parents) if path.exists())
    free = shutil.disk_usage(folder).free
    return Check("disk", free > _ROOM, f"{free / 1024**3:.1f} GiB free for {runs}", "Free some space: 2 GiB at least.")


def _engine() -> Check:
    with tempfile.TemporaryDirectory() as folder:
        engine = EngineHost(EngineSettings(), log=Path(folder) / "engine.log")
        try:
            engine.start()
            about = ", ".join(f"{name} {value}" for name, value in engine.environment.items())
            return Check("engine", True, about)
        except EngineError as error:
            return Check("engine", False, str(error), "The engine's process could not start; the log's end is above.")
        finally:
            engine.close()
