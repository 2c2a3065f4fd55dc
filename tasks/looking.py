"""A run directory that is only looked at: nothing in it changes, whatever opening it would mend or record.

What would be written goes to a temporary folder that lies over the run directory and ends with this process. So looking
needs no lock and no permission to write, leaves no trace in the run's state, and may be done while the run goes on.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from schemas.records import Commit
from tasks.disk import LocalDisk


class LookingDisk(LocalDisk):
    """`below` as it is, with this process's own writes over it."""

    def __init__(self, below: Path) -> None:
        self._folder = TemporaryDirectory(prefix="papo-look-")
        super().__init__(Path(self._folder.name))
        self._below = below.absolute()
        self._gone: set[str] = set()
        """Paths of `below` that count as removed."""

    def local(self, path: str) -> str:
        found = self._found(path)
        if not found.exists():
            # An engine is about to write it.
            found = self._over(path)
        return str(found.resolve())

    def read(self, path: str) -> bytes:
        return self._found(path).read_bytes()

    def read_tail(self, path: str, size: int) -> bytes:
        with self._found(path).open("rb") as file:
            file.seek(max(0, self.size(path) - size))
            return file.read()

    def digest(self, path: str) -> tuple[str, int]:
        found = self._found(path)
        return LocalDisk(found.parent).digest(found.name)

    def write(self, path: str, data: bytes) -> None:
        self._over(path)
        super().write(path, data)

    def write_at(self, path: str, offset: int, data: bytes) -> None:
        self._lift(path)
        super().write_at(path, offset, data)

    def append(self, path: str, data: bytes) -> None:
        self._lift(path)
        super().append(path, data)

    def truncate(self, path: str, size: int) -> None:
        self._lift(path)
        super().truncate(path, size)

    def sync(self, path: str) -> None:
        """Nothing here is to last."""

    def sync_folder(self, path: str) -> None:
        """Nothing here is to last."""

    def rename(self, source: str, target: str) -> None:
        self._lift(source)
        self._over(target)
        super().rename(source, target)
        self._gone.add(_plain(source))

    def link(self, source: str, target: str) -> None:
        if self.exists(target):
            raise FileExistsError(target)
        self._lift(source)
        self._over(target)
        super().link(source, target)

    def remove(self, path: str) -> None:
        if not self.exists(path):
            raise FileNotFoundError(path)
        (self.root / path).unlink(missing_ok=True)
        self._gone.add(_plain(path))

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(self.root / path, ignore_errors=True)
        self._gone.add(_plain(path))

    def make_folder(self, path: str) -> None:
        (self.root / path).mkdir(parents=True, exist_ok=True)

    def exists(self, path: str) -> bool:
        return self._found(path).exists()

    def size(self, path: str) -> int:
        return self._found(path).stat().st_size

    def names(self, path: str) -> list[str]:
        below = LocalDisk(self._below).names(path)
        seen = {name for name in below if not self._is_gone(os.path.join(path, name))}
        return sorted(seen | set(super().names(path)))

    def walk(self, path: str) -> list[str]:
        below = LocalDisk(self._below).walk(path)
        seen = {name for name in below if not self._is_gone(os.path.join(path, name))}
        return sorted(seen | set(super().walk(path)))

    def _found(self, path: str) -> Path:
        """Where a path is: over the run directory, else in it, unless it counts as removed there."""
        over = self.root / path
        return over if over.exists() or self._is_gone(path) else self._below / path

    def _is_gone(self, path: str) -> bool:
        plain = Path(_plain(path))
        return not self._gone.isdisjoint({str(plain), *map(str, plain.parents)})

    def _over(self, path: str) -> Path:
        """The path over the run directory, in a folder that is there."""
        over = self.root / path
        over.parent.mkdir(parents=True, exist_ok=True)
        return over

    def _lift(self, path: str) -> None:
        """Copy what is about to change."""
        found, over = self._found(path), self._over(path)
        if found == over or not found.exists():
            return
        if found.is_dir():
            shutil.copytree(found, over)
        else:
            shutil.copyfile(found, over)


class NoLease:
    """Nobody needs to be kept out where nothing is written."""

    token = 0

    def raise_above(self, commits: Sequence[Commit]) -> None: ...

    def beat(self) -> None: ...

    def release(self) -> None: ...


def _plain(path: str) -> str:
    return os.path.normpath(path)
