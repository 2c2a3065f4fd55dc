"""Control groups: where they can be made, with which limits, and that none is left. v2 on a made-up tree of folders."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from papo.sandbox import Isolation, Limits, Outcome, cgroups, isolation, membership, run
from papo.sandbox.isolation import python

LIMITS = Limits(cpu_seconds=4.0, wall_seconds=20.0, memory_bytes=200 * 2**20, disk_bytes=16 * 2**20, processes=16)
MOST = LIMITS.memory_bytes + LIMITS.disk_bytes + cgroups.SLACK_BYTES
TOGETHER = """
import os, time
for _ in range({count}):
    if os.fork() == 0:
        break
kept = bytearray(b'x') * ({mib} * 2**20)
time.sleep(60)
"""
UNWAITED = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range({count}):
    if os.fork() == 0:
        until = time.process_time() + 0.05
        while time.process_time() < until: pass
        os._exit(0)
    try: os.wait()
    except ChildProcessError: pass
"""
FILES = ("cgroup.procs", "cgroup.kill", "memory.max", "memory.swap.max", "memory.oom.group", "memory.events",
         "pids.max", "cpu.stat")  # fmt: skip
real = pytest.mark.skipif(cgroups.here() is None, reason="this process may make no control groups")


def ended(code: str, limits: Limits = LIMITS, kind: Isolation = "namespaces") -> Outcome:
    argv = [python(), "-I", "{program}/main.py"]
    return run(argv, files={"main.py": code.encode()}, limits=limits, isolation=kind)


def left() -> list[Path]:
    home = cgroups.here()
    return [] if home is None else [path for folder in home.folders for path in folder.glob(f"papo-*-{os.getpid()}-*")]


@pytest.fixture(autouse=True)
def _no_group_is_left() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]  # pytest uses it
    yield
    assert left() == []


@real
def test_many_processes_together_never_hold_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """BUG-076: each is below what one may have."""
    peaks: list[int] = []
    remove = cgroups.Group.remove

    def noting(group: cgroups.Group) -> None:
        files = [folder / name for folder in group.folders for name in ("memory.max_usage_in_bytes", "memory.peak")]
        peaks.extend(int(file.read_text()) for file in files if file.exists())
        remove(group)

    monkeypatch.setattr(cgroups.Group, "remove", noting)
    assert ended(TOGETHER.format(count=11, mib=150)).ending == "memory"
    assert peaks == [pytest.approx(MOST, rel=0.35)]
    assert peaks[0] <= MOST


def test_many_processes_together_are_ended_without_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "make", lambda limits: None)
    assert ended(TOGETHER.format(count=11, mib=150)).ending == "memory"


@real
@pytest.mark.parametrize("kind", [*isolation.ORDER, "none"])
def test_what_the_kernel_ends_is_over_its_memory(kind: Isolation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree is within its limit at every look: only the group's lower one has ended a process of it."""
    monkeypatch.setattr(cgroups, "SLACK_BYTES", -120 * 2**20)
    if kind != "none" and isolation.fault_of(kind) is not None:
        pytest.skip(f"{kind}: {isolation.fault_of(kind)}")
    assert ended(TOGETHER.format(count=2, mib=50), kind=kind).ending == "memory"
    monkeypatch.undo()
    limits = replace(LIMITS, wall_seconds=1.0)
    assert ended(TOGETHER.format(count=2, mib=50), limits, kind).ending in ("wall", "busy")


@real
@pytest.mark.slow
def test_children_that_nobody_waits_for_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they used is lost to their parent, and to who only looks at the tree."""
    limits = replace(LIMITS, cpu_seconds=0.5, wall_seconds=30.0)
    assert ended(UNWAITED.format(count=1000), limits).ending == "cpu"
    counted = ended(UNWAITED.format(count=12), replace(limits, cpu_seconds=5.0))
    monkeypatch.setattr(cgroups, "make", lambda limits: None)
    lost = ended(UNWAITED.format(count=12), replace(limits, cpu_seconds=5.0))
    assert counted.cpu_seconds > 0.6 > lost.cpu_seconds


@real
def test_a_group_is_removed_with_whoever_is_in_it() -> None:
    group = cgroups.make(LIMITS)
    assert group is not None
    sleeping = subprocess.Popen(["/bin/sleep", "60"])
    for path in cgroups.places(group)["enter"]:
        Path(path).write_text(f"{sleeping.pid}")
    group.remove()
    assert sleeping.wait() == -signal.SIGKILL


@real
def test_groups_of_a_killed_caller_are_removed_by_the_next_start() -> None:
    code = "import os\nfrom papo.sandbox import Limits, cgroups\ncgroups.make(Limits())\nos.kill(os.getpid(), 9)"
    home = cgroups.here()
    assert home is not None
    killed = subprocess.Popen([sys.executable, "-c", code])
    killed.wait()
    stale = [path for folder in home.folders for path in folder.glob(f"papo-*-{killed.pid}-*")]
    assert len(stale) == len(home.folders)
    mine = cgroups.make(LIMITS)
    assert mine is not None
    for folder in home.folders:
        cgroups.sweep(folder)
    assert not any(path.exists() for path in stale)
    assert all(folder.exists() for folder in mine.folders)
    mine.remove()


def test_where_this_process_is() -> None:
    mounts = (
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw shared:3 - cgroup cgroup rw,memory\n"
        "36 31 0:33 /docker/a /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "37 31 0:34 /docker/b /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    )
    groups = "9:pids:/docker/a\n4:memory:/runs/1\n3:cpu,cpuacct:/docker/a/x\n1:name=systemd:/\n0::/user.slice\n"
    found = {name: f"{path}" for name, path in cgroups.own_folders(mounts, groups).items()}
    assert found == {
        "memory": "/sys/fs/cgroup/memory/runs/1",
        "cpu": "/sys/fs/cgroup/cpu,cpuacct/x",
        "cpuacct": "/sys/fs/cgroup/cpu,cpuacct/x",
        "unified": "/sys/fs/cgroup/unified/user.slice",
    }


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders that behave like cgroup v2's as far as this needs: not run on a real one."""
    mkdir, rmdir = Path.mkdir, Path.rmdir

    def made(self: Path) -> None:
        mkdir(self)
        for name in FILES:
            (self / name).touch()

    def emptied(self: Path) -> None:
        if (self / "cgroup.procs").read_text() and not (self / "cgroup.kill").read_text():
            raise OSError(16, "busy")
        for file in self.iterdir():
            file.unlink()
        rmdir(self)

    (tmp_path / "slice" / "unit").mkdir(parents=True)
    monkeypatch.setattr(Path, "mkdir", made)
    monkeypatch.setattr(Path, "rmdir", emptied)
    return tmp_path / "slice"


def delegate(folder: Path, controllers: str) -> None:
    (folder / "cgroup.subtree_control").write_text(controllers)


def test_v2_where_the_controllers_are_delegated(tree: Path) -> None:
    own = {"unified": tree / "unit"}
    assert cgroups.find(own) is None
    delegate(tree, "cpu io")
    assert cgroups.find(own) is None
    delegate(tree, "cpu memory pids")
    assert cgroups.find(own) == cgroups.Home(unified=True, folders=(tree,))
    delegate(tree / "unit", "memory pids")
    assert cgroups.find(own) == cgroups.Home(unified=True, folders=(tree / "unit",))
    assert sorted(path.name for path in tree.iterdir()) == ["cgroup.subtree_control", "unit"]


def test_v2_limits_counts_and_removal(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "here", lambda: cgroups.Home(unified=True, folders=(tree,)))
    group = cgroups.make(LIMITS)
    assert group is not None
    (folder,) = group.folders
    assert {name: (folder / name).read_text() for name in FILES} == {
        "memory.max": f"{MOST}", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "16",
        "cgroup.procs": "", "cgroup.kill": "", "memory.events": "", "cpu.stat": "",
    }  # fmt: skip
    inside = membership.opened(cgroups.places(group))
    assert (membership.kills(inside), membership.used(inside)) == (0, 0.0)
    (folder / "memory.events").write_text("low 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n")
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\n")
    assert (membership.kills(inside), membership.used(inside)) == (3, 2.5)
    membership.enter(inside)
    assert (folder / "cgroup.procs").read_text() == "0"
    killed: list[str] = []
    monkeypatch.setattr(cgroups.time, "sleep", lambda seconds: killed.append((folder / "cgroup.kill").read_text()))
    group.remove()
    assert killed == ["1"]
    assert not folder.exists()


def test_a_group_that_cannot_be_made_is_no_error(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "here", lambda: cgroups.Home(unified=True, folders=(tree / "gone",)))
    assert cgroups.make(LIMITS) is None
    monkeypatch.setattr(cgroups, "here", lambda: None)
    assert cgroups.make(LIMITS) is None
