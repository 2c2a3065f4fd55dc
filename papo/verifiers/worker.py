"""The program of a worker: `python -m papo.verifiers.worker CPU_SECONDS MEMORY_BYTES`, one JSON object a line.

In: {reference, answer, rules}. Out: {same, canonical, reason}. The kernel ends the process when one pair has used its
CPU seconds (a busy host takes none of them away) or when it asks for more memory than it may have. It trusts no text:
nothing is evaluated, and the process holds nothing but what it was given.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from papo.verifiers.engines import Engines
from papo.verifiers.judging import decide
from papo.verifiers.rules import Rules
from papo.verifiers.syntax import Unreadable


def main() -> None:
    """Answer requests until the input ends."""
    cpu_seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whatever a library prints must not be taken for a reply.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    engine = Engines(importing=_untimed)
    for line in sys.stdin:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        reply = _reply(request, engine)
        signal.setitimer(signal.ITIMER_PROF, 0)
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def _reply(request: dict[str, Any], engine: Engines) -> dict[str, Any]:
    try:
        found = decide(request["reference"], request["answer"], rules=Rules(**request["rules"]), engine=engine)
    except Unreadable as unreadable:
        return {"same": None, "canonical": None, "reason": str(unreadable), "status": "unscorable"}
    except MemoryError:
        return {"same": None, "canonical": None, "reason": "out of memory", "status": "timeout"}
    except Exception as error:
        # A fault of an engine is a fact about this pair; the worker goes on with the next.
        return {"same": None, "canonical": None, "reason": f"{type(error).__name__}: {error}", "status": "error"}
    return {"same": found.same, "canonical": found.canonical, "reason": found.reason, "status": "ok"}


@contextmanager
def _untimed() -> Generator[None]:
    """Stop the clock: what happens inside is no part of the pair at hand."""
    left, _ = signal.setitimer(signal.ITIMER_PROF, 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, left)


if __name__ == "__main__":
    main()
