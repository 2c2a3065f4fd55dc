"""The program that isolates another, run with nothing but the standard library; `papo.sandbox.watching` goes on.

Arguments: the descriptors report, stdout, stderr, requests, replies (−1: none). On standard input one line of JSON,
then silence for as long as the caller lives. It makes the namespaces, whose first process takes the whole tree with it
when it ends; one line of JSON on `report` says how the program ended.
"""

import base64
import json
import os
import signal
import sys
from typing import Any, NoReturn

from papo.sandbox.membership import opened
from papo.sandbox.syscalls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    NEWIPC,
    NEWNET,
    NEWNS,
    NEWPID,
    NEWUSER,
    NEWUTS,
    PDEATHSIG,
    SUBREAPER,
    enter_root,
    map_user,
    mount,
    prctl,
    unshare,
)
from papo.sandbox.watching import watch

DEVICES = ("null", "zero", "full", "random", "urandom")
FIRST_UID = 1_900_000_000
"""Above what any system gives out; the launcher's process id is added, so that no two sandboxes share one."""


def main() -> None:
    """Isolate, watch, report. The exit code is 0 where there is a report."""
    report, *pipes = (int(argument) for argument in sys.argv[1:6])
    spec = json.loads(_line(0))
    try:
        spec["group"] = opened(spec["group"])
    except OSError as error:
        _fault(report, error)
    if spec["isolation"] == "none":
        prctl(SUBREAPER, 1)
        write_files(spec["program"], spec)
        watch(spec, report, pipes)
    spec["uid"] = FIRST_UID + os.getpid() if os.getuid() == 0 else None
    leave(spec["uid"])
    first = os.fork()
    if first == 0:
        prctl(PDEATHSIG, signal.SIGKILL)
        try:
            new_root(spec)
        except OSError as error:
            _fault(report, error)
        watch(spec, report, pipes)
    os.close(report)
    for pipe in pipes:
        if pipe >= 0:
            os.close(pipe)
    # The end of the first process of a namespace is the end of all in it, and is waited for here.
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(first, signal.SIGKILL))
    os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) != 0)


def leave(uid: int | None) -> None:
    """Leave the caller's namespaces; without root by way of a user namespace of its own."""
    owner, group = os.getuid(), os.getgid()
    unshare(NEWNS | NEWPID | NEWNET | NEWIPC | NEWUTS | (NEWUSER if uid is None else 0))
    if uid is None:
        map_user(0, owner, group)


def new_root(spec: dict[str, Any]) -> None:
    """A root of its own: system folders read only, devices, /proc, the program, and an empty folder to work in."""
    root = spec["root"]
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    for path in spec["readable"]:
        target = root + path
        if os.path.islink(path):
            os.symlink(os.readlink(path), target)
            continue
        place(path, target)
        mount(path, target, None, MS_BIND | MS_REC)
        # In a user namespace, what is locked on the source may not be let go of.
        flags = os.statvfs(path).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
        mount("none", target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | flags)
    for device in DEVICES:
        place(f"/dev/{device}", f"{root}/dev/{device}")
        mount(f"/dev/{device}", f"{root}/dev/{device}", None, MS_BIND)
    os.makedirs(f"{root}/proc")
    hidden = "hidepid=2" if spec["uid"] is not None else None
    mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, hidden)
    os.makedirs(root + spec["program"])
    write_files(root + spec["program"], spec)
    os.makedirs(root + spec["folder"])
    disk = spec["limits"]["disk_bytes"]
    mount("tmpfs", root + spec["folder"], "tmpfs", MS_NOSUID | MS_NODEV, f"mode=777,size={disk},nr_inodes=4096")
    mount("none", root, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    enter_root(root)
    os.chdir(spec["folder"])


def place(source: str, target: str) -> None:
    """Something to mount `source` on."""
    os.makedirs(target if os.path.isdir(source) else os.path.dirname(target), mode=0o755, exist_ok=True)
    if not os.path.isdir(source):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))


def write_files(folder: str, spec: dict[str, Any]) -> None:
    """The program's own files, which it may read and run."""
    for name, content in spec["files"].items():
        with open(f"{folder}/{name}", "wb") as file:
            file.write(base64.b64decode(content))
        os.chmod(f"{folder}/{name}", 0o755)


def _fault(report: int, error: OSError) -> NoReturn:
    os.write(report, json.dumps({"fault": f"{error}"}).encode() + b"\n")
    os._exit(1)


def _line(at: int) -> bytes:
    found = bytearray()
    while not found.endswith(b"\n"):
        part = os.read(at, 65536)
        if not part:
            os._exit(1)
        found += part
    return bytes(found)
