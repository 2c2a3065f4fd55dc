"""What a model folder's files hash to: how a model is known that a run uses and does not keep."""

import hashlib
from pathlib import Path

from papo.errors import DataError
from schemas.canonical import sha256_of

_CHUNK = 1 << 22


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
