"""A run directory that was moved, copied to another machine or mounted elsewhere: where things are now.

A run file has the places as they were when the run began. Each is looked for at the same way from the run's folder
first (a project that was moved as a whole), then where it was.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from schemas.filechecks import file_faults, resolve
from tasks.runfile import RunFile


def is_called(folder: Path, name: str) -> bool:
    """Whether a run's folder goes by `name` as well: it is a link to it, or the file system takes both spellings."""
    for parent in (folder.parent, folder.resolve().parent):
        try:
            if (parent / name).samefile(folder):
                return True
        except OSError:
            continue
    return False


def base_now(run_file: RunFile, folder: Path) -> Path:
    """The folder that relative paths of the run's config start from: the first place at which all of them lead to
    something, else the one that was recorded."""
    places = _places(run_file, "base", run_file.base, folder)
    return next((place for place in places if not file_faults(run_file.latest, place)), Path(run_file.base))


def found_model(run_file: RunFile, base: Path, folder: Path) -> str:
    """Where the first policy's folder is: it is needed until version 0 is kept, and by adapters always."""
    written = run_file.latest.model.path
    named = [] if written is None else [resolve(written, base)]
    places = (*_places(run_file, "model", run_file.model, folder), *named)
    return str(next((place for place in places if place.is_dir()), Path(run_file.model)))


def from_run(path: str, folder: Path) -> str:
    """The way to `path` from the run's folder."""
    return os.path.relpath(path, folder.resolve())


def _places(run_file: RunFile, what: str, recorded: str, folder: Path) -> Iterator[Path]:
    way = run_file.near.get(what)
    if way is not None:
        yield Path(os.path.normpath(folder.resolve() / way))
    yield Path(recorded)
