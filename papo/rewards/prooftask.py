"""What is to be proved: the reference answer of a formal proof, read; and the ways in which judging one can end."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from papo.sandbox.transfer import is_a

LONGEST_TEXT = 200_000
_FIELDS = ("name", "statement", "preamble", "proof")


class Unproved(Exception):
    """The proof is none; why is the first argument."""


class NoTask(Exception):
    """The preamble or the statement is not what the checker accepts: the data set's fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofTask:
    """A statement that a proof script is judged against."""

    name: str
    """What the theorem is called."""
    statement: str
    """The proposition, as it would stand between the theorem's colon and its full stop (Lean: and `:=`)."""
    preamble: str = ""
    """Imports, settings and definitions of the data set, in front of the theorem."""
    proof: str | None = None
    """A proof script that is known to be right."""


@lru_cache(maxsize=512)
def read_task(reference_answer: str) -> ProofTask:
    """The task of a reference answer. Raises ValueError with all that is wrong with it."""
    try:
        found = json.loads(reference_answer)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the task is no JSON ({error})") from None
    if not is_a(found, dict):
        raise ValueError(f"the task is a {type(found).__name__}: give an object with name and statement")
    if faults := _faults(found):
        raise ValueError("; ".join(faults))
    # A statement is a proposition; that a full stop ends its sentence is not part of it.
    statement = found["statement"].strip()
    preamble, proof = found.get("preamble") or "", found.get("proof")
    return ProofTask(
        name=found["name"].strip(), statement=statement.removesuffix(".").strip(), preamble=preamble, proof=proof
    )


def _faults(found: Mapping[str, Any]) -> list[str]:
    unknown = sorted(set(found) - set(_FIELDS))
    faults = [f"{name!r} is no field of a task: {', '.join(_FIELDS)} are" for name in unknown]
    for field in _FIELDS:
        text: Any = found.get(field)
        optional = field in ("preamble", "proof")
        if is_a(text, str):
            blank = field != "preamble" and not text.strip(" \t\r\n.")
            fault = "is blank" if blank else unreadable(text)
        else:
            fault = f"is a {type(text).__name__}: give a text" if field in found else "is missing"
            fault = None if text is None and optional else fault
        faults += [f"{field} {fault}"] if fault else []
    return faults


def unreadable(text: str) -> str | None:
    """Why no checker can be given this text; None if one can."""
    if "\0" in text:
        return "has a NUL character"
    if len(text) > LONGEST_TEXT:
        return f"is longer than {LONGEST_TEXT} characters"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "has a surrogate, which is no character"
    return None
