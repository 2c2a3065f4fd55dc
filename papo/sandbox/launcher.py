"""The program that isolates another, run with nothing but the standard library; `papo.sandbox.watching` goes on.

Arguments: the descriptors report, stdout, stderr, requests, replies (−1: none). On standard input one line of JSON,
then silence for as long as the caller lives. It makes the namespaces, whose first process takes the whole tree with it
when it ends; one line of JSON on `report` says how the program ended.
"""

import contextlib
import json
import os
import signal
import sys

from papo.sandbox import bubblewrap
from papo.sandbox.membership import opened
from papo.sandbox.root import new_root, write_files
from papo.sandbox.syscalls import (
    NEWIPC,
    NEWNET,
    NEWNS,
    NEWPID,
    NEWUSER,
    NEWUTS,
    PDEATHSIG,
    SUBREAPER,
    map_user,
    prctl,
    unshare,
)
from papo.sandbox.watching import watch

FIRST_UID = 1_900_000_000
"""Above what any system gives out; the launcher's process id is added, so that no two sandboxes share one."""


def main() -> None:
    """Isolate, watch, report how the program ended, or why it could not be isolated."""
    report, *pipes = (int(argument) for argument in sys.argv[1:6])
    spec = json.loads(_line(0))
    spec["uid"] = FIRST_UID + os.getpid() if os.getuid() == 0 else None
    # What the first process leaves behind comes here, to be waited for.
    prctl(SUBREAPER, 1)
    said = -1
    try:
        spec["group"] = opened(spec["group"])
        if spec["isolation"] == "bubblewrap":
            first, said = bubblewrap.started(spec, report, pipes)
        elif spec["isolation"] == "namespaces":
            leave(spec["uid"])
            first = os.fork()
        else:
            write_files(spec["program"], spec)
            first = 0
        if first == 0:
            if spec["isolation"] == "namespaces":
                prctl(PDEATHSIG, signal.SIGKILL)
                new_root(spec)
            watch(spec, report, pipes)
    except OSError as error:
        os.write(report, json.dumps({"fault": f"{error}"}).encode() + b"\n")
        os._exit(1)
    for pipe in pipes:
        if pipe >= 0:
            os.close(pipe)
    # The end of the first process of a namespace is the end of all in it, and is waited for here.
    signal.signal(signal.SIGTERM, lambda number, frame: stop(first))
    status = os.waitpid(first, 0)[1]
    if said >= 0 and os.waitstatus_to_exitcode(status) > 0:
        os.write(
            report, json.dumps({"fault": os.pread(said, 300, 0).decode(errors="replace").strip()}).encode() + b"\n"
        )
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    os._exit(0)


def stop(first: int) -> None:
    """End the first process, if it is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(first, signal.SIGKILL)


def leave(uid: int | None) -> None:
    """Leave the caller's namespaces; without root by way of a user namespace of its own."""
    owner, group = os.getuid(), os.getgid()
    unshare(NEWNS | NEWPID | NEWNET | NEWIPC | NEWUTS | (NEWUSER if uid is None else 0))
    if uid is None:
        map_user(0, owner, group)


def _line(at: int) -> bytes:
    found = bytearray()
    while not found.endswith(b"\n"):
        part = os.read(at, 65536)
        if not part:
            os._exit(1)
        found += part
    return bytes(found)
