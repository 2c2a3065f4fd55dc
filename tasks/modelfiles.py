"""What a model folder's files hash to: how a model is known that a run uses and does not keep."""

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

from papo.errors import DataError
from schemas.canonical import sha256_of
from schemas.records import Record

POLICY = "policy"
"""The role of the first policy's folder."""
_CHUNK = 1 << 22
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")


class WeightFile(Record):
    """A file of weights as it was when its hash was taken."""

    sha256: str
    size: int
    mtime_ns: int


Weights = dict[str, dict[str, WeightFile]]
"""By the role of a model folder, its files of weights by name."""


def weights_in(folder: Path, known: Mapping[str, WeightFile]) -> dict[str, WeightFile]:
    """The files of weights of a model folder; one whose size and time are those that are `known` is not read."""
    found: dict[str, WeightFile] = {}
    for path in sorted(folder.glob("*")):
        if path.suffix in _WEIGHTS and path.is_file():
            stat, before = path.stat(), known.get(path.name)
            if before is None or (before.size, before.mtime_ns) != (stat.st_size, stat.st_mtime_ns):
                before = WeightFile(sha256=_digest(path), size=stat.st_size, mtime_ns=stat.st_mtime_ns)
            found[path.name] = before
    return found


def check_weights(before: Weights, now: Weights, *, needed: Collection[str], run_id: str) -> Weights:
    """`before` with the times of now. Raises DataError, naming each file that is not what it was, of the roles that
    are `needed`."""
    faults: list[str] = []
    for role in sorted(needed & before.keys()):
        was, there = before[role], now.get(role, {})
        for name in sorted(was.keys() | there.keys()):
            if name not in there:
                faults.append(f"{name} of the {role}'s model folder is not there any more.")
            elif name not in was:
                faults.append(f"{name} of the {role}'s model folder was not there when the run began.")
            elif was[name].sha256 != there[name].sha256:
                faults.append(
                    f"{name} of the {role}'s model folder is another file than when run {run_id} began: sha256 "
                    f"{there[name].sha256[:16]}…, and {was[name].sha256[:16]}… then."
                )
    if faults:
        raise DataError("\n".join([*faults, "Restore the folder, or start another run (--run-id NAME)."]))
    return before | {role: now[role] for role in needed & before.keys()}


def files_sha256(folder: str) -> str:
    """Of the names and contents of its files, notes and hidden ones left out. Raises DataError where one cannot be
    read."""
    try:
        files = sorted(path for path in Path(folder).iterdir() if path.is_file() and path.suffix != ".md")
        return sha256_of({path.name: _digest(path) for path in files if not path.name.startswith(".")})
    except OSError as error:
        raise DataError(
            f"The reward model in {folder} cannot be read ({error.strerror}). Put its folder back, or name where it is "
            "now (at the next resume: --set reward.outcome.path=...)."
        ) from None


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            found.update(data)
    return found.hexdigest()
