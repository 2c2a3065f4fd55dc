"""Inside the namespaces: starts the program, watches over what its whole tree uses, kills what it leaves, reports."""

import contextlib
import json
import os
import resource
import select
import signal
import time
from typing import Any, NoReturn

from papo.sandbox.membership import enter, kills, used
from papo.sandbox.seccomp import confine_calls
from papo.sandbox.syscalls import DUMPABLE, NEWUSER, NO_NEW_PRIVS, map_user, prctl, unshare

STACK_BYTES = 8 * 2**20
"""Addresses that a thread sets aside and hardly uses."""


def watch(spec: dict[str, Any], report: int, pipes: list[int]) -> NoReturn:
    """Start the program, end it at its limits, kill what it leaves, report."""
    prctl(DUMPABLE, 0)
    # All of them: a program of the same user may send what it likes.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    began = time.monotonic()
    program = os.fork()
    if program == 0:
        start(spec, pipes)
    for pipe in pipes:
        if pipe >= 0:
            os.close(pipe)
    seen = {"memory_bytes": 0, "cpu_seconds": 0.0, "waited": 0.0}
    ending: str | None = None
    status: int | None = None
    while ending is None and status is None:
        woken = signal.sigtimedwait((signal.SIGCHLD, signal.SIGTERM), 0.02)
        status = reap(program)
        # What comes from outside of the namespace has no process there; the program cannot ask for its own end.
        asked = woken and woken.si_signo == signal.SIGTERM and (spec["isolation"] == "none" or woken.si_pid == 0)
        ending = "stopped" if asked else over(spec, seen, time.monotonic() - began)
    wall, full = time.monotonic() - began, spec["isolation"] != "none" and os.statvfs(spec["folder"]).f_bavail == 0
    left = end_all(spec, program if status is None else None)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = os.waitstatus_to_exitcode(status) if status is not None else 0
    if status is not None:
        by_signal = {-signal.SIGXCPU: "cpu", -signal.SIGXFSZ: "files"}.get(code, "signal")
        ending = "files" if full else "exit" if code >= 0 else by_signal
    if kills(spec["group"]):
        ending, code = "memory", 0
    cpu = max(seen["cpu_seconds"], ended.ru_utime + ended.ru_stime, used(spec["group"]))
    memory = max(seen["memory_bytes"], ended.ru_maxrss * 1024)
    found = {"ending": ending, "code": abs(code), "cpu_seconds": cpu, "wall_seconds": wall, "memory_bytes": memory}
    os.write(report, json.dumps({**found, "left": left}).encode() + b"\n")
    os._exit(0)


def reap(program: int) -> int | None:
    """Collect all that have ended; the program's status if it is among them."""
    status = None
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            status = ended[1] if ended[0] == program else status
    except ChildProcessError:
        pass
    return status


def over(spec: dict[str, Any], seen: dict[str, float], wall: float) -> str | None:
    """The limit that the tree is over; `seen` keeps the most of each."""
    limits = spec["limits"]
    tasks, memory, cpu, waited = 0, 0, 0.0, 0.0
    for pid in tree(spec):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            with open(f"/proc/{pid}/schedstat", "rb") as file:
                waited = max(waited, int(file.read().split()[1]) / 1e9)
        except (OSError, IndexError):
            continue
        cpu += sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
        tasks += int(fields[17])
        memory += int(fields[21]) * resource.getpagesize()
    if memory > limits["memory_bytes"]:
        memory = min(memory, shared_once(spec))
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = max(cpu + own.ru_utime + own.ru_stime, used(spec["group"]))
    now = {"memory_bytes": memory, "cpu_seconds": cpu, "waited": waited}
    seen.update({name: max(seen[name], value) for name, value in now.items()})
    if select.select([0], [], [], 0)[0]:
        return "stopped"
    late = wall > limits["wall_seconds"]
    checks = (
        ("cpu", seen["cpu_seconds"] > limits["cpu_seconds"]),
        ("memory", memory > limits["memory_bytes"] or kills(spec["group"]) > 0),
        ("processes", tasks >= limits["processes"]), ("busy", late and seen["waited"] > wall / 4), ("wall", late),
    )  # fmt: skip
    return next((name for name, holds in checks if holds), None)


def shared_once(spec: dict[str, Any]) -> int:
    """Resident bytes, those that forked processes share counted once: dearer to ask for, so only asked in doubt."""
    total = 0
    for pid in tree(spec):
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:"))
        except OSError:
            continue
    return total


def tree(spec: dict[str, Any]) -> list[int]:
    """The sandbox's processes: all that can be seen but this one, or its descendants where more can be seen."""
    if spec["isolation"] != "none":
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                children = [int(child) for child in file.read().split()]
        except OSError:
            continue
        found += children
        waiting += children
    return found


def end_all(spec: dict[str, Any], program: int | None) -> int:
    """Kill the tree and wait for it; how many processes the program left behind."""
    left = len([pid for pid in tree(spec) if pid != program])
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        if spec["isolation"] != "none":
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        for pid in tree(spec) if spec["isolation"] == "none" else ():
            os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            break
        time.sleep(0.005)
    return left


def start(spec: dict[str, Any], pipes: list[int]) -> NoReturn:
    """Become the program: no rights, no environment, no open file but its own."""
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.setsid()
        enter(spec["group"])
        stdin = os.open(f"{spec['program']}/stdin" if "stdin" in spec["files"] else os.devnull, os.O_RDONLY)
        stdout, stderr, requests, replies = pipes
        # Out of the way of the numbers that they go to.
        found = [os.dup(at if at >= 0 else stdin) for at in (stdin, stdout, stderr, requests, replies)]
        moved = [os.dup2(at, 100 + number) for number, at in enumerate(found)]
        for number, at in enumerate(moved):
            os.dup2(at, number, inheritable=True)
        os.closerange(5, 4096)
        os.chdir(spec["folder"])
        confine(spec)
        os.execve(spec["argv"][0], spec["argv"], spec["environment"])
    except BaseException as error:
        os.write(2, f"not started: {error}".encode())
        os._exit(125)


def confine(spec: dict[str, Any]) -> None:
    """Give up root and the user, then set what this process and its children may have and may call."""
    limits = spec["limits"]
    if spec["isolation"] != "none":
        uid = spec["uid"]
        if uid is not None:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        # Else its own /proc/self, where users are mapped, would not be its own.
        prctl(DUMPABLE, 1)
        owner, group = os.getuid(), os.getgid()
        # A user of its own already bounds a program of root's; where users have none, this one need not be there.
        try:
            unshare(NEWUSER)
            map_user(1000, owner, group)
        except OSError:
            if uid is None:
                raise
        resource.setrlimit(resource.RLIMIT_NPROC, (limits["processes"],) * 2)
    prctl(NO_NEW_PRIVS, 1)
    seconds = int(limits["cpu_seconds"]) + 2
    addresses = limits["memory_bytes"] + limits["processes"] * STACK_BYTES
    allowed = {
        "CPU": seconds, "AS": addresses, "FSIZE": limits["disk_bytes"], "CORE": 0, "NOFILE": 128, "MEMLOCK": 0,
        "MSGQUEUE": 0,
    }  # fmt: skip
    for name, value in allowed.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    confine_calls()
