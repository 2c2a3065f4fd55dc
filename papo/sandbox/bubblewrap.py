"""Isolation by bubblewrap: the namespaces and the root are its work, watching and limits are papo's own.

Called by root, it runs as the sandbox's unused user: what root alone may read is laid ready before that. Inside, this
file and those it needs are handed over as code, as papo's folder is no part of the sandbox. Standard library only.
"""

import json
import marshal
import os
import signal
import sys
from itertools import chain
from types import CodeType
from typing import Any, NoReturn

from papo.sandbox.root import DEVICES, lay_ready, mount_folders
from papo.sandbox.syscalls import MS_PRIVATE, MS_REC, NEWNS, PDEATHSIG, mount, prctl, unshare
from papo.sandbox.watching import watch

_MODULES = ("syscalls", "membership", "seccomp", "watching", "root", "bubblewrap")
_BOOT = """
import marshal, sys, types
with open(int(sys.argv[1]), "rb") as file:
    told = marshal.load(file)
for name in ("papo", "papo.sandbox"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
for name, code in told["modules"].items():
    module = sys.modules["papo.sandbox." + name] = types.ModuleType("papo.sandbox." + name)
    module.__file__ = "/" + name
    exec(code, module.__dict__)
module.within(told)
"""


def started(spec: dict[str, Any], report: int, pipes: list[int]) -> tuple[int, int]:
    """Start bubblewrap; its process id, and the descriptor of what it says. Raises OSError."""
    uid, base = spec["uid"], ""
    if uid is not None:
        unshare(NEWNS)
        mount("none", "/", None, MS_REC | MS_PRIVATE)
        base = spec["root"]
        lay_ready(spec)
    told, said = os.memfd_create("told", 0), os.memfd_create("said")
    modules = {name: _code(name) for name in _MODULES}
    with open(told, "wb", closefd=False) as file:
        marshal.dump({"modules": modules, "spec": spec | {"uid": None}, "report": report, "pipes": pipes}, file)
    os.lseek(told, 0, os.SEEK_SET)
    first = os.fork()
    if first == 0:
        os.dup2(said, 2)
        _become(uid, arguments(spec, base, told), [report, *pipes, *chain(*spec["group"].values())])
    os.close(told)
    return first, said


def _code(name: str) -> CodeType:
    """A module of the sandbox, compiled."""
    loader: Any = sys.modules[f"papo.sandbox.{name}"].__loader__
    return loader.get_code(f"papo.sandbox.{name}")


def _become(uid: int | None, command: list[str], kept: list[int]) -> NoReturn:
    try:
        if uid is not None:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        prctl(PDEATHSIG, signal.SIGKILL)
        for at in kept:
            if at >= 0:
                os.set_inheritable(at, True)
        os.execve(command[0], command, {})
    except OSError as error:
        os.write(2, f"{command[0]}: {error}".encode())
    os._exit(1)


def arguments(spec: dict[str, Any], base: str, told: int) -> list[str]:
    """The command: nothing shared with the host, its folders read only, the watching process first and with one right,
    that of mounting in its own namespaces, which the program does not get."""
    found = [spec["bubblewrap"], "--unshare-all", "--uid", "1000", "--gid", "1000", "--cap-add", "CAP_SYS_ADMIN"]
    found += ["--as-pid-1", "--die-with-parent"]
    for inner, path in spec["readable"].items():
        if os.path.islink(path):
            found += ["--symlink", os.readlink(path), inner]
        else:
            found += ["--ro-bind", base + inner if base else path, inner]
    for path in spec["unseen"] if not base else ():
        found += ["--tmpfs", path, "--remount-ro", path]
    for device in DEVICES:
        found += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    found += ["--proc", "/proc", "--dir", spec["program"], "--dir", spec["folder"], "--remount-ro", "/"]
    return [*found, "--", spec["python"], "-I", "-S", "-B", "-c", _BOOT, str(told)]


def within(told: dict[str, Any]) -> NoReturn:
    """The first process inside: makes the program's folders and watches over it."""
    prctl(PDEATHSIG, signal.SIGKILL)
    spec = told["spec"]
    try:
        mount_folders(spec, "")
    except OSError as error:
        os.write(told["report"], json.dumps({"fault": f"{error}"}).encode() + b"\n")
        os._exit(0)
    watch(spec, told["report"], told["pipes"])
