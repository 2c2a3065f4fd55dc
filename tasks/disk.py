"""The file operations that a run is made of, each a point where the machine may die.

Everything durable goes through `Disk`, so that the simulation can stand in for the kernel: lose what was not synced,
tear what was half written, run out of space, let a second writer in. Paths are relative to the run directory.
"""

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from papo.errors import DiskFull


class Disk(Protocol):
    @property
    def writer(self) -> str:
        """Names this writer among all that ever write here."""
        ...

    def read(self, path: str) -> bytes: ...
    def read_tail(self, path: str, size: int) -> bytes: ...
    def digest(self, path: str) -> tuple[str, int]:
        """SHA-256 and size of a file, however large."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Create or replace the content. Not durable until `sync`."""
        ...

    def write_at(self, path: str, offset: int, data: bytes) -> None:
        """Overwrite or extend from `offset`, so that doing it twice is doing it once."""
        ...

    def append(self, path: str, data: bytes) -> None: ...
    def truncate(self, path: str, size: int) -> None: ...
    def sync(self, path: str) -> None: ...
    def sync_folder(self, path: str) -> None:
        """Make the folder's names (creations, renames, removals) durable."""
        ...

    def rename(self, source: str, target: str) -> None: ...
    def link(self, source: str, target: str) -> None:
        """Give the file a second name; raises FileExistsError where the name is taken (create-only)."""
        ...

    def remove(self, path: str) -> None: ...
    def remove_tree(self, path: str) -> None: ...
    def make_folder(self, path: str) -> None: ...
    def exists(self, path: str) -> bool: ...
    def size(self, path: str) -> int: ...
    def names(self, path: str) -> list[str]:
        """Names in a folder, sorted; empty where there is no such folder."""
        ...

    def walk(self, path: str) -> list[str]:
        """Files below a folder, relative to it, sorted."""
        ...

    def free(self) -> int:
        """Bytes left for this run."""
        ...

    def local(self, path: str) -> str:
        """The path that an engine can open."""
        ...


@contextmanager
def space_errors(path: str) -> Generator[None]:
    """Turn the kernel's "no space left" into DiskFull."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DiskFull(
            f"No space left on disk while writing {path}. Everything published so far is safe: free some space, "
            "then resume the run."
        ) from error


class LocalDisk:
    """A folder of this machine's file system."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.writer = secrets.token_hex(4)

    def local(self, path: str) -> str:
        return str((self.root / path).resolve())

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def read_tail(self, path: str, size: int) -> bytes:
        with open(self.root / path, "rb") as file:
            file.seek(max(0, self.size(path) - size))
            return file.read()

    def digest(self, path: str) -> tuple[str, int]:
        with open(self.root / path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()

    def write(self, path: str, data: bytes) -> None:
        with space_errors(path):
            (self.root / path).write_bytes(data)

    def write_at(self, path: str, offset: int, data: bytes) -> None:
        with space_errors(path):
            descriptor = os.open(self.root / path, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                view = memoryview(data)
                while view:
                    written = os.pwrite(descriptor, view, offset)
                    view, offset = view[written:], offset + written
            finally:
                os.close(descriptor)

    def append(self, path: str, data: bytes) -> None:
        with space_errors(path), open(self.root / path, "ab") as file:
            file.write(data)

    def truncate(self, path: str, size: int) -> None:
        os.truncate(self.root / path, size)

    def sync(self, path: str) -> None:
        with space_errors(path):
            self._sync(path, os.O_RDONLY)

    def sync_folder(self, path: str) -> None:
        self._sync(path, os.O_RDONLY | os.O_DIRECTORY)

    def rename(self, source: str, target: str) -> None:
        with space_errors(target):
            os.rename(self.root / source, self.root / target)

    def link(self, source: str, target: str) -> None:
        with space_errors(target):
            os.link(self.root / source, self.root / target)

    def remove(self, path: str) -> None:
        (self.root / path).unlink()

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(self.root / path)

    def make_folder(self, path: str) -> None:
        with space_errors(path):
            (self.root / path).mkdir(exist_ok=True)

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()

    def size(self, path: str) -> int:
        return (self.root / path).stat().st_size

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self.root / path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def walk(self, path: str) -> list[str]:
        folder = self.root / path
        return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())

    def free(self) -> int:
        return shutil.disk_usage(self.root).free

    def _sync(self, path: str, flags: int) -> None:
        descriptor = os.open(self.root / path, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
