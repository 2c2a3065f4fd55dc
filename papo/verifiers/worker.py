"""The program of a worker that decides pairs: `python -m papo.verifiers.worker CPU_SECONDS MEMORY_BYTES`.

In: {reference, answer, rules}. Out: {same, canonical, reason, status}. It trusts no text: nothing is evaluated, and the
process holds nothing but what it was given.
"""

from typing import Any

from papo.verifiers.engines import Engines
from papo.verifiers.judging import decide
from papo.verifiers.rules import Rules
from papo.verifiers.serving import Reply, serve, untimed_later
from papo.verifiers.syntax import Unreadable

_ENGINE = Engines(importing=untimed_later)


def answer(request: dict[str, Any]) -> Reply:
    """The reply to one pair."""
    try:
        found = decide(request["reference"], request["answer"], rules=Rules(**request["rules"]), engine=_ENGINE)
    except Unreadable as unreadable:
        return {"same": None, "canonical": None, "reason": str(unreadable), "status": "unscorable"}
    except MemoryError:
        return {"same": None, "canonical": None, "reason": "out of memory", "status": "timeout"}
    except Exception as error:
        # A fault of an engine is a fact about this pair; the worker goes on with the next.
        return {"same": None, "canonical": None, "reason": f"{type(error).__name__}: {error}", "status": "error"}
    return {"same": found.same, "canonical": found.canonical, "reason": found.reason, "status": "ok"}


if __name__ == "__main__":
    serve(answer)
