"""A control group for each sandbox, where this process may make one: the tree's memory and processes bounded at once.

Without one the tree is watched, and what it takes between two looks is bounded for each process only. Groups are made
below this process's own (cgroup v1; v2 where the controllers are delegated, else beside it), so that limits it is under
hold on. Their names tell who made them, and the next start removes those of processes that are no more.
"""

import itertools
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from papo.sandbox.limits import Limits

SLACK_BYTES = 32 * 2**20
"""For what the kernel counts beside a program's memory and folder: page tables, stacks of its own, buffers."""
REMOVAL_SECONDS = 2.0
UNIFIED = "unified"
_NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where groups are made: one folder on cgroup v2, one a hierarchy on v1 (memory; pids and cpuacct if there)."""

    unified: bool
    folders: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The group of one sandbox, in each of its hierarchies."""

    unified: bool
    folders: tuple[Path, ...]

    def remove(self) -> None:
        """Leave nothing: whoever is still in it is killed. What cannot be removed in time is left to the next start."""
        deadline = time.monotonic() + REMOVAL_SECONDS
        while left := [folder for folder in self.folders if not _removed(folder)]:
            if time.monotonic() > deadline:
                return
            for folder in left:
                _kill(folder)
            time.sleep(0.005)


def places(group: Group | None) -> dict[str, list[str]]:
    """Files for the launcher: where to enter, what counts kills for memory, what counts processor time."""
    events, used = ("memory.events", "cpu.stat") if group and group.unified else ("memory.oom_control", "cpuacct.usage")
    folders = group.folders if group else ()
    return {
        name: [f"{folder}/{file}" for folder in folders if (folder / file).exists()]
        for name, file in (("enter", "cgroup.procs"), ("kills", events), ("used", used))
    }


def make(limits: Limits) -> Group | None:
    """A group with these limits; None where none can be made, which is no error."""
    home = here()
    if home is None:
        return None
    name = _name(next(_NUMBERS))
    group = Group(unified=home.unified, folders=tuple(folder / name for folder in home.folders))
    try:
        for folder in group.folders:
            folder.mkdir()
            _limit(folder, limits)
    except OSError:
        group.remove()
        return None
    return group


@cache
def here() -> Home | None:
    """Where this process can make groups, tried once; groups of processes that are no more are removed."""
    try:
        mounts, groups = (Path(f"/proc/self/{name}").read_text() for name in ("mountinfo", "cgroup"))
    except OSError:
        return None
    home = find(own_folders(mounts, groups))
    if home is not None:
        for folder in home.folders:
            sweep(folder)
    return home


def own_folders(mounts: str, groups: str) -> dict[str, Path]:
    """This process's own group in each hierarchy that is mounted, by controller; `mounts` and `groups` are /proc's."""
    paths: dict[str, str] = {}
    for line in groups.splitlines():
        _, names, path = line.split(":", 2)
        paths.update(dict.fromkeys(names.split(",") if names else [UNIFIED], path))
    found: dict[str, Path] = {}
    for line in mounts.splitlines():
        about, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        root, point = about.split()[3:5]
        names = [UNIFIED] if kind == "cgroup2" else options.split(",") if kind == "cgroup" else []
        for name in (name for name in names if name in paths):
            inner = os.path.relpath(paths[name], root)
            if not inner.startswith(".."):
                found[name] = Path(point, inner)
    return found


def find(own: dict[str, Path]) -> Home | None:
    """Where a group with a limit of memory can be made, by making and removing one."""
    if UNIFIED in own:
        for folder in (own[UNIFIED], own[UNIFIED].parent):
            if _delegated(folder, enable=folder == own[UNIFIED]) and _creatable(folder, "memory.max"):
                return Home(unified=True, folders=(folder,))
    if "memory" not in own or not _creatable(own["memory"], "memory.limit_in_bytes"):
        return None
    others = [own[name] for name in ("pids", "cpuacct") if name in own and _creatable(own[name], "cgroup.procs")]
    return Home(unified=False, folders=tuple(dict.fromkeys([own["memory"], *others])))


def sweep(folder: Path) -> None:
    """Remove the empty groups of processes of this process's pid namespace that are no more."""
    _, namespace, *_ = _name(0).split("-")
    for left in folder.glob(f"papo-{namespace}-*-*-*"):
        _, _, pid, began, _ = left.name.split("-")
        if _began(pid) != began:
            _removed(left)


def _limit(folder: Path, limits: Limits) -> None:
    """Set what this hierarchy knows of; kernels without swap accounting lack its files."""
    memory = limits.memory_bytes + limits.disk_bytes + SLACK_BYTES
    # In this order: v1 refuses a limit with swap that is below the one without.
    for name, value in (
        ("memory.max", memory), ("memory.swap.max", 0), ("memory.oom.group", 1), ("memory.swappiness", 0),
        ("memory.limit_in_bytes", memory), ("memory.memsw.limit_in_bytes", memory), ("pids.max", limits.processes),
    ):  # fmt: skip
        if (folder / name).exists():
            (folder / name).write_text(f"{value}")


def _delegated(folder: Path, *, enable: bool) -> bool:
    """Whether groups in `folder` get the controllers of memory and processes."""
    file = folder / "cgroup.subtree_control"
    wanted = {"memory", "pids"}
    with suppress(OSError):
        if enable and not wanted <= set(file.read_text().split()):
            # Refused while processes are in the folder itself, but for the root of all.
            file.write_text("+memory +pids")
    with suppress(OSError):
        return wanted <= set(file.read_text().split())
    return False


def _creatable(folder: Path, file: str) -> bool:
    tried = folder / _name(next(_NUMBERS))
    try:
        tried.mkdir()
    except OSError:
        return False
    found = os.access(tried / file, os.W_OK)
    _removed(tried)
    return found


def _name(number: int) -> str:
    namespace = os.stat("/proc/self/ns/pid").st_ino
    return f"papo-{namespace}-{os.getpid()}-{_began('self')}-{number}"


def _began(pid: str) -> str | None:
    """When a process started, in the kernel's ticks since the host did; None if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except OSError:
        return None


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _kill(folder: Path) -> None:
    if (folder / "cgroup.kill").exists():
        with suppress(OSError):
            (folder / "cgroup.kill").write_text("1")
            return
    for pid in _members(folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _members(folder: Path) -> Iterator[int]:
    found: Sequence[str] = ()
    with suppress(OSError):
        found = (folder / "cgroup.procs").read_text().split()
    yield from (int(pid) for pid in found if pid != "0")
