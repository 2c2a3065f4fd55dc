"""The filter of system calls: what it says to each, on both machines; that it is on; what goes on as ever under it."""

import errno
import os
import re
import shutil
import socket
from pathlib import Path

import pytest

from papo.sandbox import Isolation, Limits, Outcome, isolation, run, seccomp
from papo.sandbox.isolation import python

LIMITS = Limits(cpu_seconds=4.0, wall_seconds=12.0)
MACHINES = list(seccomp.ARCHITECTURES)
KINDS: list[Isolation] = [*(kind for kind in isolation.ORDER if isolation.fault_of(kind) is None), "none"]
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
EVERY = {**seccomp.DENIED, "clone": seccomp.CLONE, "clone3": seccomp.CLONE3, "socket": seccomp.SOCKET,
         "socketpair": seccomp.SOCKETPAIR, "ioctl": seccomp.IOCTL, "prlimit64": seccomp.PRLIMIT}  # fmt: skip
filtered = pytest.mark.skipif(os.uname().machine not in MACHINES, reason="no filter for this machine")


def said(machine: str, call: int, *arguments: int, table: int | None = None) -> int | None:
    """The error that the filter gives a call, by running its instructions; None: it is let through."""
    fields = {0: call, 4: seccomp.ARCHITECTURES[machine] if table is None else table}
    fields |= {16 + 8 * place: value & 0xFFFFFFFF for place, value in enumerate((*arguments, *[0] * 6)[:6])}
    code = seccomp.program(machine)
    at, held = 0, 0
    while True:
        kind, yes, no, value = code[at]
        at += 1
        if kind == 0x06:
            return None if value == 0x7FFF0000 else value & 0xFFFF
        if kind == 0x20:
            held = fields[value]
            continue
        holds = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[kind]
        at += yes if holds else no


def ended(code: str, kind: Isolation) -> Outcome:
    argv = [python(), "-I", "{program}/main.py"]
    return run(argv, files={"main.py": code.encode()}, limits=LIMITS, isolation=kind)


@pytest.mark.parametrize("machine", MACHINES)
def test_what_the_filter_says(machine: str) -> None:
    at = MACHINES.index(machine)
    for name, numbers in seccomp.DENIED.items():
        if (number := numbers[at]) is not None:
            assert said(machine, number) == errno.EPERM, name
    assert said(machine, seccomp.CLONE3[at]) == errno.ENOSYS
    for namespace in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert said(machine, seccomp.CLONE[at], namespace | 17) == errno.EPERM
    thread = 0x3D0F00
    assert said(machine, seccomp.CLONE[at], thread) is None
    for call in (seccomp.SOCKET[at], seccomp.SOCKETPAIR[at]):
        assert said(machine, call, socket.AF_UNIX, socket.SOCK_STREAM) is None
        assert {said(machine, call, family) for family in (0, 2, 10, 16, 17, 38, 40)} == {errno.EPERM}
    assert said(machine, seccomp.PRLIMIT[at], 1) == errno.EPERM
    assert said(machine, seccomp.PRLIMIT[at], 0) is said(machine, seccomp.PRLIMIT[at], 2) is None
    assert said(machine, seccomp.IOCTL[at], 0, 0x5401) is None
    assert {said(machine, seccomp.IOCTL[at], 0, request) for request in (0x5412, 0x541C)} == {errno.EPERM}
    others = set(range(470)) - {numbers[at] for numbers in EVERY.values()}
    assert {said(machine, call) for call in others} == {None}
    assert said(machine, others.pop(), table=0x40000003) == errno.ENOSYS
    assert said(machine, seccomp.X32 + 1) == errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_the_kernels(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("the kernel's headers are not installed")
    found = dict(re.findall(r"#define __NR_(\w+)\s+(\d+)", HEADERS[machine].read_text()))
    # Newer than some headers.
    known = {name: numbers[MACHINES.index(machine)] for name, numbers in EVERY.items() if name in found}
    assert known == {name: int(found[name]) for name in known}
    assert len(known) > 60


@filtered
@pytest.mark.parametrize("kind", KINDS)
def test_the_filter_is_on_and_each_call_of_the_list_fails(kind: Isolation) -> None:
    at = MACHINES.index(os.uname().machine)
    numbers = {name: found[at] for name, found in (*seccomp.DENIED.items(), ("clone3", seccomp.CLONE3)) if found[at]}
    code = f"""
import ctypes
call = ctypes.CDLL(None, use_errno=True).syscall
for name, number in {numbers!r}.items():
    ctypes.set_errno(0)
    if call(number, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() not in (1, 38):
        print('HARM', name, ctypes.get_errno())
print([line.split()[1] for line in open('/proc/self/status') if line.startswith('Seccomp:')])
"""
    assert ended(code, kind).stdout == b"['2']\n"


@filtered
@pytest.mark.parametrize("kind", KINDS)
def test_no_network_even_without_namespaces(kind: Isolation) -> None:
    """BUG-078."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket\nsocket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2)\nprint('HARM')"
        outcome = ended(code, kind)
    assert outcome.code == 1
    assert b"PermissionError" in outcome.stderr


USUAL = """
import asyncio, multiprocessing, os, socket, subprocess, tempfile, threading
from concurrent.futures import ThreadPoolExecutor
def twice(pipe): pipe.send(2 * pipe.recv())
if __name__ == '__main__':
    with ThreadPoolExecutor(4) as pool: assert sum(pool.map(abs, range(-9, 1))) == 45
    for method in ('fork', 'spawn'):
        context = multiprocessing.get_context(method)
        mine, other = context.Pipe()
        child = context.Process(target=twice, args=(other,)); child.start()
        mine.send(21); assert mine.recv() == 42; child.join(); assert child.exitcode == 0
    assert subprocess.run(['sort'], input=b'b\\na\\n', capture_output=True).stdout == b'a\\nb\\n'
    assert subprocess.run('echo $((6*7))', shell=True, capture_output=True).stdout == b'42\\n'
    one, two = socket.socketpair(); one.send(b'x'); assert two.recv(1) == b'x'
    async def wait(): await asyncio.sleep(0); return 7
    assert asyncio.run(wait()) == 7
    with tempfile.NamedTemporaryFile('w') as file: file.write('x'); file.flush(); assert os.path.getsize(file.name) == 1
    print('fine')
"""
THREADS = """
#include <iostream>
#include <thread>
#include <vector>
#include <filesystem>
int main() {
    std::vector<std::thread> all; std::atomic<long> sum{0};
    for (int i = 0; i < 4; i++) all.emplace_back([&sum, i] { sum += i; });
    for (auto& one : all) one.join();
    std::cout << sum << " " << std::filesystem::exists("/usr") << std::endl;
}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_usual_programs_go_on(kind: Isolation) -> None:
    outcome = ended(USUAL, kind)
    assert outcome.stdout == b"fine\n", outcome


@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler is installed")
@pytest.mark.parametrize("kind", KINDS)
def test_compiler_and_threads_in_cpp_go_on(kind: Isolation) -> None:
    command = "g++ -x c++ -std=c++17 {program}/source -include atomic -pthread -o main && ./main"
    outcome = run(["/bin/sh", "-c", command], files={"source": THREADS.encode()}, limits=LIMITS, isolation=kind)
    assert outcome.stdout == b"6 1\n", outcome
