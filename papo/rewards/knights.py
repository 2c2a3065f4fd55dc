"""The outcome reward for knights and knaves: who is what, as a whole, in any order.

A reference is a sentence, “Zoey is a fool, and Riley is a sage.”, or JSON, `{"Zoey": "fool", "Riley": "sage"}`.
"""

import json
import re
from dataclasses import asdict
from typing import Any, Literal, cast

from papo.rewards.answers import committed
from papo.rewards.structured import (
    LONGEST_COMPLETION,
    Truncated,
    UnreadableError,
    cut_off,
    decided,
    find_answer,
    missing,
    plain,
    strict_json,
    unscorable,
)
from papo.rewards.verdict import Verdict
from papo.values import value

Place = Literal["boxed", "answer_tag", "closing"]
LONGEST = 10_000
_ONE = re.compile(
    r"(?:and\s+)?(?:\(?\d+\)|\d+\.|[-*•])?\s*([^\W\d_][\w'’-]*)\s*(?::|=|→|->|\bis\b)\s*(?:an?\s+|the\s+)?([^\W\d_][\w'’-]*)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"(?:\s*(?:[,;.\n&]|\band\b))*\s*", re.IGNORECASE)
_DRESS = re.compile(r"\\(?:text|textbf|mathrm)\s*\{([^{}]*)\}|[*_`$\"“”]|\\\\|\\[,; ]")


@value
class KnightsKnaves:
    r"""1 if everybody has the role of the reference and nobody else is named, else 0; the same for evaluation.

    The answer must be nothing but the assignment: with “or”, “not”, a person with two roles or words beside it, it
    commits to nothing and is wrong. Order, case, numbering and punctuation do not count.
    """

    kind: Literal["knights_knaves"] = "knights_knaves"
    extract: tuple[Place, ...] = ("boxed", "answer_tag", "closing")
    r"""Where the assignment stands, in order of preference: the last `\boxed{…}`, the last `<answer>…</answer>`, the
    lines at the end that are assignments as wholes."""
    truncated: Truncated = "zero"
    """Completions cut off at the token limit earn 0, or are scored like any other."""

    def __post_init__(self) -> None:
        if not self.extract:
            raise ValueError("extract is empty: name at least one of boxed, answer_tag, closing.")

    @property
    def version(self) -> str:
        """Declared version of the rule with all settings: part of the record and of the stage's key."""
        return f"knights_knaves/2 {json.dumps(asdict(self), sort_keys=True)}"

    def __call__(self, completion: str, *, reference_answer: str, finish_reason: str) -> Verdict:
        """Judge one completion. Raises on no text whatever."""
        try:
            gold = assignment(reference_answer)
        except UnreadableError as error:
            return unscorable(f"the reference {reference_answer[:80]!r} is no assignment: {error}")
        found = find_answer(committed(completion[-LONGEST_COMPLETION:]), self.extract, closing=_closing)
        if finish_reason == "length" and self.truncated == "zero":
            return cut_off(found)
        if found is None:
            return missing(self.extract)
        try:
            return decided(assignment(found) == gold, extracted=found)
        except UnreadableError as error:
            return decided(False, extracted=found, reason=str(error))

    def check_reference(self, reference_answer: str) -> str | None:
        """Why nothing can be verified against this reference, or None."""
        try:
            assignment(reference_answer)
        except UnreadableError as error:
            return str(error)
        return None


def assignment(text: str) -> dict[str, str]:
    """Who is what, in lower case. Raises UnreadableError if the text is not an assignment and nothing else."""
    if len(text) > LONGEST:
        raise UnreadableError(f"it is longer than {LONGEST} characters")
    if text.lstrip().startswith("{"):
        return _from_json(strict_json(text))
    bare = _DRESS.sub(lambda match: match.group(1) or " ", text)
    found = dict[str, str]()
    at = _between(bare, 0)
    while at < len(bare):
        match = _ONE.match(bare, at)
        if match is None:
            raise UnreadableError("it has words that are no part of an assignment")
        name, role = (part.casefold() for part in match.groups())
        if found.setdefault(name, role) != role:
            raise UnreadableError("it gives one person two roles")
        at = _between(bare, match.end())
    if not found:
        raise UnreadableError("it names nobody")
    return found


def _between(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return at if match is None else match.end()


def _from_json(value: Any) -> dict[str, str]:
    held = cast("dict[str, Any]", value)
    if not held or not all(isinstance(role, str) and role.strip() for role in held.values()):
        raise UnreadableError("JSON of an assignment has one role, as text, for each name")
    found = {plain(name): re.sub(r"^(?:an?|the) ", "", plain(role)) for name, role in held.items()}
    if len(found) < len(held):
        raise UnreadableError("it gives one person two roles")
    return found


def _closing(text: str) -> str | None:
    """The longest run of lines at the end of the text that are assignments, blank lines among them."""
    lines, kept = text[-LONGEST:].splitlines(), list[str]()
    for line in reversed(lines):
        if line.strip():
            try:
                assignment(line)
            except UnreadableError:
                break
        kept.append(line)
    return "\n".join(reversed(kept)).strip() or None
