"""What the programs of workers share: one JSON object a line in, one out, within limits that the kernel keeps.

Arguments are CPU_SECONDS and MEMORY_BYTES. The kernel ends the process when one request has used its CPU seconds, or
the fewer that it names (a busy host takes none of them away), or when it asks for more memory than it may have.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

Reply = dict[str, Any]
PUT_OFF: Reply = {"same": None, "canonical": None, "reason": "it takes longer than a first look", "status": "put_off"}


class TakesLong(BaseException):
    """What is asked for needs more than a first look. No Exception, as no engine is to handle it."""


class _Clock:
    """Of the request at hand."""

    first_look = False


def serve(reply: Callable[[dict[str, Any]], Reply]) -> None:
    """Answer requests until the input ends."""
    cpu_seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whatever a library prints must not be taken for a reply.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, min(cpu_seconds, request.get("cpu_seconds", cpu_seconds)))
        _Clock.first_look = "cpu_seconds" in request
        try:
            found = reply(request)
        except TakesLong:
            found = PUT_OFF
        signal.setitimer(signal.ITIMER_PROF, 0)
        replies.write(json.dumps(found) + "\n")
        replies.flush()


@contextmanager
def untimed() -> Generator[None]:
    """Stop the clock: what happens inside is no part of the request at hand."""
    left, _ = signal.setitimer(signal.ITIMER_PROF, 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, left)


@contextmanager
def untimed_later() -> Generator[None]:
    """Likewise, for what takes seconds: not at a first look, which is over then. Raises TakesLong."""
    if _Clock.first_look:
        raise TakesLong
    with untimed():
        yield
