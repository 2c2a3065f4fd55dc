"""Installed distributions that programs in a sandbox may import: their own files, no others of the environment."""

import os
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path, PurePosixPath

from papo.sandbox.limits import SandboxError

PACKAGES = "/packages"


def installed(name: str) -> str:
    """The version of a distribution, or `missing`."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def readable(names: tuple[str, ...]) -> dict[str, str]:
    """What a sandbox is to read, by its path inside (below PACKAGES). Raises SandboxError for what is not installed."""
    return {f"{PACKAGES}/{inner}": path for name in names for inner, path in _readable(name)}


def imported(names: tuple[str, ...]) -> list[str]:
    """What a trial is to import of them: the packages of each, else its modules. Raises SandboxError likewise."""
    found: list[str] = []
    for name in names:
        tops = {PurePosixPath(inner).parts[0] for inner, _ in _readable(name)}
        modules = {top.removesuffix(".py") for top in tops if top.endswith(".py")}
        found += {top for top in tops if top.isidentifier() and not top.startswith("_")} or modules
    return sorted(found)


@cache
def _readable(name: str) -> tuple[tuple[str, str], ...]:
    try:
        found = distribution(name)
    except PackageNotFoundError:
        raise SandboxError(
            f"programs may import {name}, which is not installed: pip install {name}, or take it out of packages."
        ) from None
    base = Path(str(found.locate_file(""))).resolve()
    # Commands and the like lie outside of the folder that is imported from.
    own = {PurePosixPath(file) for file in found.files or () if ".." not in file.parts and not os.path.isabs(file)}
    own = {file for file in own if file.suffix != ".pyc" and (base / file).is_file()}
    tops = {PurePosixPath(file.parts[0]) for file in own}
    covered = tuple(sorted((f"{place}", f"{base / place}") for top in tops for place in _covering(base, top, own)))
    if not covered or all(inner.endswith(".pth") or ".dist-info" in inner for inner, _ in covered):
        raise SandboxError(
            f"programs may import {name}, but its installation does not say which files are its own (an editable "
            f"one?): install {name} as a package, or take it out of packages."
        )
    return covered


def _covering(base: Path, place: PurePosixPath, own: set[PurePosixPath]) -> Iterator[PurePosixPath]:
    """The largest folders, and else the files, that hold only files of the distribution (and what was compiled)."""
    at = base / place
    if at.is_file():
        if place in own:
            yield place
        return
    inside = [PurePosixPath(folder, name) for folder, _, names in os.walk(at) for name in names]
    if all(file.suffix == ".pyc" or file.relative_to(base) in own for file in inside):
        yield place
        return
    for child in sorted(os.listdir(at)):
        if child != "__pycache__":
            yield from _covering(base, place / child, own)
