"""The root of a sandbox: what of the host is in it, read only; the program's folders. Standard library only."""

import base64
import os
from typing import Any

from papo.sandbox.syscalls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    enter_root,
    mount,
)

DEVICES = ("null", "zero", "full", "random", "urandom")


def new_root(spec: dict[str, Any]) -> None:
    """A root of its own: system folders read only, devices, /proc, the program, and an empty folder to work in."""
    root = spec["root"]
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    lay_ready(spec)
    for device in DEVICES:
        place(f"/dev/{device}", f"{root}/dev/{device}")
        mount(f"/dev/{device}", f"{root}/dev/{device}", None, MS_BIND)
    for folder in ("/proc", spec["program"], spec["folder"]):
        os.makedirs(root + folder)
    hidden = "hidepid=2" if spec["uid"] is not None else None
    mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, hidden)
    mount_folders(spec, root)
    mount("none", root, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    enter_root(root)
    os.chdir(spec["folder"])


def lay_ready(spec: dict[str, Any]) -> None:
    """What of the host is to be read, below the new root."""
    root = spec["root"]
    mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    for inner, path in spec["readable"].items():
        target = root + inner
        if os.path.islink(path):
            os.symlink(os.readlink(path), target)
            continue
        place(path, target)
        mount(path, target, None, MS_BIND | MS_REC)
        # In a user namespace, what is locked on the source may not be let go of.
        flags = os.statvfs(path).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
        mount("none", target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | flags)
    for path in spec["unseen"]:
        mount("tmpfs", root + path, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "mode=755")


def mount_folders(spec: dict[str, Any], root: str) -> None:
    """The program's files, which it may read, and the folder that it works in; both are memory."""
    program, disk = root + spec["program"], spec["limits"]["disk_bytes"]
    mount("tmpfs", program, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    write_files(program, spec)
    mount("none", program, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    mount("tmpfs", root + spec["folder"], "tmpfs", MS_NOSUID | MS_NODEV, f"mode=777,size={disk},nr_inodes=4096")


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
