"""The program that scores answers: `python -m papo.gym.worker CPU_SECONDS MEMORY_BYTES`, one JSON object a line.

In: {reference, answer}. Out: {same, canonical, reason, status}, `same` for a score of 1 and `canonical` the score. The
limits are those of `papo.verifiers.worker`; loading the library is no part of an answer's time.
"""

import json
from typing import Any

from papo.gym.references import GymReference, read_reference
from papo.gym.scoring import Scorer, scorer_of
from papo.verifiers.serving import Reply, serve, untimed


def answer(request: dict[str, Any]) -> Reply:
    """The reply to one request. A scorer that raises on an answer has not accepted it."""
    try:
        reference = read_reference(request["reference"])
        with untimed():
            score = scorer_of(reference.task, json.dumps(reference.settings, sort_keys=True))
    except Exception as error:
        return {"same": None, "canonical": None, "reason": str(error)[:300], "status": "unscorable"}
    return _scored(score, reference, request["answer"])


def _scored(score: Scorer, reference: GymReference, text: str) -> Reply:
    try:
        found = float(score(text, reference.entry))
    except MemoryError:
        return {"same": None, "canonical": None, "reason": "out of memory", "status": "timeout"}
    except Exception as error:
        reason = f"the scorer refused it ({type(error).__name__}: {error})"[:300]
        return {"same": False, "canonical": "0.0", "reason": reason, "status": "ok"}
    return {"same": found >= 1.0, "canonical": str(found), "reason": f"score {found:g}", "status": "ok"}


if __name__ == "__main__":
    serve(answer)
