"""The few system calls of a sandbox, by ctypes: Python 3.11 has none of them."""

import ctypes
import os
from typing import Any

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1,
    2,
    4,
    8,
    32,
    4096,
    16384,
    1 << 18,
)
PDEATHSIG, DUMPABLE, SUBREAPER, NO_NEW_PRIVS = 1, 4, 36, 38
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_LIBC = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """mount(2)."""
    texts = [None if text is None else text.encode() for text in (source, target, kind, options)]
    call("mount", texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3], what=target)


def enter_root(root: str) -> None:
    """Make `root` this process's root, with nothing of the old one left."""
    os.chdir(root)
    call("syscall", _PIVOT_ROOT[os.uname().machine], b".", b".", what="pivot_root")
    call("umount2", b".", 2)


def unshare(flags: int) -> None:
    """unshare(2)."""
    call("unshare", flags)


def prctl(option: int, argument: int) -> None:
    """prctl(2), which does not fail for what is asked of it here."""
    _LIBC.prctl(option, ctypes.c_ulong(argument), 0, 0, 0)


def call(name: str, *arguments: Any, what: str = "") -> None:
    """A C library call. Raises OSError."""
    if getattr(_LIBC, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name} {what}: {os.strerror(number)}")


def map_user(inner: int, owner: int, group: int) -> None:
    """Let this process's new user namespace know one user."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{inner} {owner} 1"), ("gid_map", f"{inner} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
