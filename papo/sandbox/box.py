"""One sandboxed program, seen from outside: started, spoken to, ended; never waited for without a deadline."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

from papo.sandbox import cgroups
from papo.sandbox.isolation import bubblewrap, python
from papo.sandbox.limits import Isolation, Limits, Outcome, SandboxError
from papo.sandbox.places import placed

SETUP_SECONDS = 30.0
"""For the namespaces, on a busy host; not the program's time."""
GRACE_SECONDS = 1.5
KEPT_ERRORS = 65536
QUICK_READS = 64
"""At the start, and for each line that is asked for. After so many the box is looked at in intervals only, so that a
program that speaks in single bytes, or without end, does not keep its reader busy."""
INTERVAL = 0.01
FOLDER = "/box"
_HERE = Path(__file__).resolve().parent
# The launcher is of this package but must not import it: nothing but the standard library, in milliseconds.
_BOOT = """
import sys, types
for name, path in (("papo", sys.argv[1]), ("papo.sandbox", sys.argv[1] + "/sandbox")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
del sys.argv[1]
from papo.sandbox.launcher import main
main()
"""


class Box:
    """A program in a sandbox of its own, from construction to `finish`; a context that ends it.

    `files` lie in a folder that it can read; it works in an empty one. `argv` may name them by `{program}`. With
    `talking` it reads lines from descriptor 3 and writes lines to 4. `readable` are files and folders of the host that
    it may read beside the system's, by their path inside; below `/packages` it can import them, unless it is told not
    to look at its environment. Raises SandboxError if it cannot be isolated.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        files: Mapping[str, bytes],
        limits: Limits,
        isolation: Isolation = "namespaces",
        talking: bool = False,
        readable: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        command = {"bubblewrap": bubblewrap()} if isolation == "bubblewrap" else {}
        self._limits = limits
        self._root = tempfile.mkdtemp(prefix="papo-box-")
        self._received: dict[str, bytearray] = {name: bytearray() for name in ("report", "stdout", "stderr", "replies")}
        self._replied, self._line, self._seen = 0, 0, 0
        """Bytes of replies; where the next line begins; up to where no end of it is."""
        self._quick = QUICK_READS
        self._stopped: str | None = None
        reads: dict[str, int] = {}
        writes: dict[str, int] = {}
        for name in ("report", "stdout", "stderr", *(("requests", "replies") if talking else ())):
            reads[name], writes[name] = os.pipe()
        given = {**writes, "requests": reads.pop("requests", -1)}
        self._requests = writes.get("requests", -1)
        self._open = reads
        order = [given.get(name, -1) for name in ("report", "stdout", "stderr", "requests", "replies")]
        self._group = cgroups.make(limits)
        spec = placed(self._root, isolation, readable, folder=FOLDER) | {
            **command,
            "limits": asdict(limits),
            "group": cgroups.places(self._group),
            "files": {name: base64.b64encode(content).decode() for name, content in files.items()},
        }
        # Not by format: an argument may hold braces of its own.
        spec["argv"] = [text.replace("{program}", str(spec["program"])) for text in argv]
        try:
            self._process = subprocess.Popen(
                [python(), "-I", "-S", "-c", _BOOT, str(_HERE.parent), *map(str, order)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[at for at in order if at >= 0],
                env={},
                start_new_session=True,
            )
        finally:
            for at in order:
                if at >= 0:
                    os.close(at)
        self._deadline = time.monotonic() + SETUP_SECONDS + limits.wall_seconds + GRACE_SECONDS
        _write(self._process, json.dumps(spec).encode() + b"\n")

    def ask(self, line: bytes, *, longest: int | None = None) -> bytes | None:
        """Send a line, receive a line; None where the program ends, or says too much, first.

        Of a line that is longer than `longest` bytes, so many and one come back.
        """
        try:
            os.set_blocking(self._requests, False)
            self._send(line + b"\n")
        except OSError:
            return None
        return self.hear(longest=longest)

    def hear(self, *, longest: int | None = None) -> bytes | None:
        """The next line of the program."""
        self._quick += QUICK_READS
        replies = self._received["replies"]
        while (end := replies.find(b"\n", self._seen)) < 0:
            if longest is not None:
                del replies[self._line + longest + 1 :]
            self._seen = len(replies)
            if "replies" not in self._open or not self._pump():
                return None
        # A copy of what is wanted, once: what comes before it stays, and what comes after it is not touched.
        line = bytes(memoryview(replies)[self._line : end if longest is None else min(end, self._line + longest + 1)])
        self._line = self._seen = end + 1
        return line

    def finish(self, *, stop: bool = False) -> Outcome:
        """Wait for the program to end, or stop it. Raises SandboxError if it never was isolated."""
        if self._requests >= 0:
            os.close(self._requests)
            self._requests = -1
        if stop:
            self._terminate("stopped")
        while self._open and self._pump():
            continue
        self._end()
        return self._outcome()

    def __enter__(self) -> "Box":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._requests >= 0:
            os.close(self._requests)
            self._requests = -1
        self._end()

    def _send(self, line: bytes) -> None:
        data = memoryview(line)
        while data:
            try:
                data = data[os.write(self._requests, data) :]
            except BlockingIOError:
                if not self._pump(writing=True):
                    raise BrokenPipeError from None

    def _pump(self, *, writing: bool = False) -> bool:
        """Take in what is there, or wait for some; False where nothing more will come."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            self._terminate("busy")
            return False
        poll = select.poll()
        names = {at: name for name, at in self._open.items()}
        for at in names:
            poll.register(at, select.POLLIN | select.POLLHUP)
        if writing:
            poll.register(self._requests, select.POLLOUT)
        ready = [names[at] for at, _ in poll.poll(left * 1000) if at in names]
        self._quick -= len(ready)
        if self._quick < 0 and "report" not in ready:
            # What comes meanwhile is taken at once.
            time.sleep(INTERVAL)
        for name in ready:
            self._take(name)
        return "report" in self._open and self._stopped is None

    def _take(self, name: str) -> None:
        part = os.read(self._open[name], 65536)
        if not part:
            os.close(self._open.pop(name))
            return
        into = self._received[name]
        if name == "stderr":
            part = part[: max(KEPT_ERRORS - len(into), 0)]
        into += part
        self._replied += len(part) if name == "replies" else 0
        if len(into) > self._limits.output_bytes or self._replied > self._limits.output_bytes:
            self._terminate("output")

    def _terminate(self, why: str) -> None:
        self._stopped = self._stopped or why
        self._process.terminate()

    def _end(self) -> None:
        """Nothing of it is left: processes, descriptors, folder."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            try:
                self._process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        while self._open:
            os.close(self._open.popitem()[1])
        if self._group is not None:
            self._group.remove()
        shutil.rmtree(self._root, ignore_errors=True)

    def _outcome(self) -> Outcome:
        report = json.loads(self._received["report"] or "{}")
        if "fault" in report or (not report and self._stopped is None):
            raise SandboxError(
                f"a program could not be isolated: {report.get('fault', 'its launcher ended')}. See docs/sandbox.md."
            )
        blank: dict[str, Any] = {"code": 0, "cpu_seconds": 0.0, "wall_seconds": 0.0, "memory_bytes": 0, "left": 0}
        merged: dict[str, Any] = blank | report | ({"ending": self._stopped} if self._stopped else {})
        return Outcome(**merged, stdout=bytes(self._received["stdout"]), stderr=bytes(self._received["stderr"]))


def run(
    argv: Sequence[str],
    *,
    files: Mapping[str, bytes],
    limits: Limits,
    isolation: Isolation,
    stdin: bytes = b"",
    readable: Mapping[str, str] = MappingProxyType({}),
) -> Outcome:
    """Run a program to its end, with `stdin` as its input. Raises SandboxError if it cannot be isolated."""
    with Box(argv, files={**files, "stdin": stdin}, limits=limits, isolation=isolation, readable=readable) as box:
        return box.finish()


def _write(process: "subprocess.Popen[bytes]", data: bytes) -> None:
    if process.stdin is None:
        return
    try:
        process.stdin.write(data)
        process.stdin.flush()
    except OSError:
        # It has ended already; that there is no report says so.
        return
