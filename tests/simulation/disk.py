"""A disk in memory which forgets like a real one.

Content is durable once its file was synced, a name once its folder was. A crash keeps a random part of what was not:
some of the unsynced names (in the order they were made, per folder), a torn piece or zeros of unsynced content.
"""

import errno
import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tasks.disk import space_errors

_SIDECAR = re.compile(r"[a-z]+-\d{4}-[0-9a-f]{16}\.json")


class Crash(BaseException):
    """The machine stopped here. Not an Exception: nothing in the pipeline may catch it."""


@dataclass
class File:
    content: bytes = b""
    durable: bytes | None = None
    """What would be there after a crash; None: never synced."""


@dataclass
class Names:
    """One folder's names: as they are now, as they are durable, and the changes in between."""

    now: "dict[str, File | Names]" = field(default_factory=dict)
    durable: "dict[str, File | Names]" = field(default_factory=dict)
    changes: "list[list[tuple[Names, str, File | Names | None]]]" = field(default_factory=list)


@dataclass
class Faults:
    """What goes wrong, counted in operations."""

    crash_at: int | None = None
    """Stop before (or, for a write, in the middle of) this operation."""
    full_at: int | None = None
    """From this operation on, nothing more can be written, for `full_for` operations."""
    full_for: int = 1
    ignore_sync: bool = False
    """A planted bug: fsync does nothing."""
    before: "dict[int, Callable[[], None]]" = field(default_factory=dict)
    """Something else that happens before an operation (a second writer, an engine's death)."""


class SimDisk:
    def __init__(self, rng: Random, faults: Faults | None = None, *, writer: str = "w0") -> None:
        self.root = Names()
        self.rng = rng
        self.faults = faults or Faults()
        self.writer = writer
        self.operations = 0
        self.dead = False
        self.log: list[str] = []
        self.faults_took_over = False
        self.published: set[str] = set()
        """Every sidecar whose name has been durable: its shard must never be made again."""
        self.made_again: list[str] = []
        self.commits: dict[str, bytes] = {}
        """Every commit whose name has been durable: history, which nothing may change or work on again."""
        self.rewritten: list[str] = []

    def second_writer(self, name: str) -> "SimDisk":
        """The same disk as another process sees it, without faults."""
        other = SimDisk(self.rng, writer=name)
        other._share(self)
        return other

    # What the machine may die in

    def write(self, path: str, data: bytes) -> None:
        torn = self._step("write", path)
        names, name = self._parent(path)
        file = names.now.get(name)
        if not isinstance(file, File):
            file = File()
            self._change([(names, name, file)])
        file.content = self._torn(data) if torn else data
        self._die_if(torn)

    def write_at(self, path: str, offset: int, data: bytes) -> None:
        torn = self._step("write_at", path)
        names, name = self._parent(path)
        file = names.now.get(name)
        if not isinstance(file, File):
            file = File()
            self._change([(names, name, file)])
        written = self._torn(data) if torn else data
        before = file.content.ljust(offset, b"\0")
        file.content = before[:offset] + written + before[offset + len(written) :]
        self._die_if(torn)

    def append(self, path: str, data: bytes) -> None:
        torn = self._step("append", path)
        names, name = self._parent(path)
        file = names.now.get(name)
        if not isinstance(file, File):
            file = File()
            self._change([(names, name, file)])
        file.content += self._torn(data) if torn else data
        self._die_if(torn)
        self._watch(data)

    def truncate(self, path: str, size: int) -> None:
        self._plain_step("truncate", path)
        self._file(path).content = self._file(path).content[:size]

    def sync(self, path: str) -> None:
        self._plain_step("sync", path)
        if not self.faults.ignore_sync:
            self._file(path).durable = self._file(path).content

    def sync_folder(self, path: str) -> None:
        self._plain_step("sync_folder", path)
        if self.faults.ignore_sync:
            return
        names = self._folder(path)
        # A change of two folders (a rename between them) becomes durable whole with either.
        for changes in list(names.changes):
            for where, name, target in changes:
                _set(where.durable, name, target)
                if changes in where.changes:
                    where.changes.remove(changes)
                if where is names and isinstance(target, File):
                    self._became_durable(os.path.join(path, name), name, target)

    def rename(self, source: str, target: str) -> None:
        self._plain_step("rename", target)
        from_names, from_name = self._parent(source)
        to_names, to_name = self._parent(target)
        moved = from_names.now.get(from_name)
        if moved is None:
            raise FileNotFoundError(source)
        there = to_names.now.get(to_name)
        if isinstance(there, Names) and there.now:
            raise OSError(errno.ENOTEMPTY, "folder not empty", target)
        self._change([(from_names, from_name, None), (to_names, to_name, moved)])

    def link(self, source: str, target: str) -> None:
        self._plain_step("link", target)
        names, name = self._parent(target)
        if name in names.now:
            raise FileExistsError(target)
        self._change([(names, name, self._file(source))])

    def remove(self, path: str) -> None:
        self._plain_step("remove", path)
        self._file(path)
        names, name = self._parent(path)
        self._change([(names, name, None)])

    def remove_tree(self, path: str) -> None:
        self._folder(path)
        for name in self.walk(path):
            self.remove(os.path.join(path, name))
        self._plain_step("remove_tree", path)
        names, name = self._parent(path)
        self._change([(names, name, None)])

    def make_folder(self, path: str) -> None:
        self._plain_step("make_folder", path)
        names, name = self._parent(path)
        if name not in names.now:
            self._change([(names, name, Names())])

    # What only looks

    def local(self, path: str) -> str:
        return path

    def read(self, path: str) -> bytes:
        self._alive()
        return self._file(path).content

    def read_tail(self, path: str, size: int) -> bytes:
        return self.read(path)[-size:]

    def digest(self, path: str) -> tuple[str, int]:
        data = self.read(path)
        return hashlib.sha256(data).hexdigest(), len(data)

    def exists(self, path: str) -> bool:
        self._alive()
        try:
            names, name = self._parent(path)
        except FileNotFoundError:
            return False
        return name == "." or name in names.now

    def size(self, path: str) -> int:
        return len(self.read(path))

    def names(self, path: str) -> list[str]:
        self._alive()
        if not self.exists(path):
            return []
        target = self._look(path)
        return sorted(target.now) if isinstance(target, Names) else []

    def walk(self, path: str) -> list[str]:
        target = self._look(path) if self.exists(path) else None
        if not isinstance(target, Names):
            return []
        found: list[str] = []
        for name, entry in target.now.items():
            if isinstance(entry, Names):
                found += [os.path.join(name, below) for below in self.walk(os.path.join(path, name))]
            else:
                found.append(name)
        return sorted(found)

    def free(self) -> int:
        return 1 << 40

    # Crashing

    def after_crash(self, faults: Faults | None = None, *, writer: str, rng: Random | None = None) -> "SimDisk":
        """The disk as the next process finds it. `rng`: what decides from now on."""
        rng = rng or self.rng
        _crash(self.root, rng)
        survivor = SimDisk(rng, faults, writer=writer)
        survivor._share(self)
        return survivor

    def _share(self, disk: "SimDisk") -> None:
        self.root, self.published, self.made_again = disk.root, disk.published, disk.made_again
        self.commits, self.rewritten = disk.commits, disk.rewritten

    def _step(self, operation: str, path: str) -> bool:
        """Count an operation that writes content; True if the machine dies in the middle of it."""
        self._alive()
        self.operations += 1
        self.log.append(f"{operation} {path}")
        hook = self.faults.before.pop(self.operations, None)
        if hook is not None:
            hook()
        full_at = self.faults.full_at
        is_full = full_at is not None and full_at <= self.operations < full_at + self.faults.full_for
        if is_full and operation in ("write", "write_at", "append", "make_folder"):
            with space_errors(path):
                raise OSError(errno.ENOSPC, "no space left")
        if self.operations == self.faults.crash_at:
            if operation in ("write", "write_at", "append") and self.rng.random() < 0.5:
                return True
            self.dead = True
            raise Crash(f"{operation} {path}")
        return False

    def _plain_step(self, operation: str, path: str) -> None:
        if self._step(operation, path):
            raise AssertionError("only writes are torn")

    def _die_if(self, torn: bool) -> None:
        if torn:
            self.dead = True
            raise Crash("in the middle of a write")

    def _alive(self) -> None:
        if self.dead:
            raise Crash("a dead process does nothing")

    def _watch(self, data: bytes) -> None:
        """Note it when a shard is made although its sidecar had been published."""
        line = json.loads(data)
        if self.faults_took_over:
            # This writer looked before the other one published; create-only names refuse what it makes in vain.
            return
        if line.get("event") == "making":
            folder = "genesis" if line["iteration"] < 0 else f"{line['iteration']:05d}"
            sidecar = f"iterations/{folder}/{line['stage']}-{line['shard']:04d}-{line['key'][:16]}.json"
            # (An evaluation that closes a run is filed under the iteration before it, after that one's commit.)
            history = f"iterations/{folder}/commit.json" in self.commits and line["stage"] != "evaluate"
            if sidecar in self.published or history:
                self.made_again.append(sidecar)

    def _became_durable(self, path: str, name: str, file: File) -> None:
        if _SIDECAR.match(name):
            self.published.add(path)
        if name == "commit.json" and self.commits.setdefault(path, file.content) != file.content:
            self.rewritten.append(path)

    def _torn(self, data: bytes) -> bytes:
        return data[: self.rng.randrange(len(data) + 1)]

    def _change(self, changes: "list[tuple[Names, str, File | Names | None]]") -> None:
        for names, name, target in changes:
            _set(names.now, name, target)
        for names in {id(names): names for names, _, _ in changes}.values():
            names.changes.append(changes)

    def _look(self, path: str) -> "File | Names":
        target: File | Names = self.root
        for part in [part for part in path.split("/") if part not in ("", ".")]:
            if not isinstance(target, Names) or part not in target.now:
                raise FileNotFoundError(path)
            target = target.now[part]
        return target

    def _file(self, path: str) -> File:
        target = self._look(path)
        if not isinstance(target, File):
            raise IsADirectoryError(path)
        return target

    def _folder(self, path: str) -> Names:
        target = self._look(path)
        if not isinstance(target, Names):
            raise NotADirectoryError(path)
        return target

    def _parent(self, path: str) -> tuple[Names, str]:
        folder, name = os.path.split(os.path.normpath(path))
        return self._folder(folder or "."), name


def _set(names: "dict[str, File | Names]", name: str, target: "File | Names | None") -> None:
    if target is None:
        names.pop(name, None)
    else:
        names[name] = target


def _crash(names: Names, rng: Random, seen: set[int] | None = None) -> None:
    """Keep what is durable and a random beginning of the changes that are not."""
    seen = set() if seen is None else seen
    for changes in names.changes[: rng.randrange(len(names.changes) + 1)]:
        for where, name, target in changes:
            _set(where.durable, name, target)
    names.changes.clear()
    names.now = dict(names.durable)
    for entry in names.now.values():
        if isinstance(entry, Names):
            _crash(entry, rng)
        elif id(entry) not in seen:
            seen.add(id(entry))
            _settle(entry, rng)


def _settle(file: File, rng: Random) -> None:
    if file.content != file.durable:
        before = file.durable or b""
        file.content = rng.choice(
            [
                before,
                file.content,
                file.content[: rng.randrange(len(file.content) + 1)],
                before + b"\0" * max(0, len(file.content) - len(before)),
            ]
        )
    file.durable = file.content


__all__ = ["Crash", "Faults", "File", "Names", "SimDisk"]
