"""What the programs of workers share: one JSON object a line in, one out, within limits that the kernel keeps.

Arguments are CPU_SECONDS and MEMORY_BYTES. The kernel ends the process when one request has used its CPU seconds (a
busy host takes none of them away) or when it asks for more memory than it may have.
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
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        found = reply(request)
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
