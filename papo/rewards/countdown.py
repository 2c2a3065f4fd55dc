"""The outcome reward for countdown: an expression that makes the target of the given numbers.

A reference is JSON, `{"numbers": [24, 4, 5], "target": 25}`, or an expression, of which numbers and target are taken.
"""

import json
import re
from collections import Counter
from dataclasses import asdict
from fractions import Fraction
from typing import Any, Literal, cast

from papo.rewards.answers import committed
from papo.rewards.expressions import Worth, evaluate
from papo.rewards.structured import (
    LONGEST_COMPLETION,
    Truncated,
    UnreadableError,
    cut_off,
    decided,
    find_answer,
    missing,
    strict_json,
    unscorable,
)
from papo.rewards.verdict import Verdict
from papo.values import value

Place = Literal["boxed", "answer_tag", "last_line"]
MOST_NUMBERS = 50
_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{1,40})?", re.ASCII)


@value
class Countdown:
    r"""1 if the expression is worth the target and uses the numbers as it may, else 0; the same for evaluation.

    Read by `papo.rewards.expressions`, never evaluated as code; 3.0 is the number 3, and 24 is never 2 and 4. What
    follows an equals sign must be the target.
    """

    kind: Literal["countdown"] = "countdown"
    extract: tuple[Place, ...] = ("boxed", "answer_tag", "last_line")
    r"""Where the expression stands, in order of preference: the last `\boxed{…}`, the last `<answer>…</answer>`, the
    last line that is not blank."""
    use: Literal["exactly_once", "at_most_once"] = "exactly_once"
    """Every given number once, or none of them more often than it is given."""
    truncated: Truncated = "zero"
    """Completions cut off at the token limit earn 0, or are scored like any other."""

    def __post_init__(self) -> None:
        if not self.extract:
            raise ValueError("extract is empty: name at least one of boxed, answer_tag, last_line.")

    @property
    def version(self) -> str:
        """Declared version of the rule with all settings: part of the record and of the stage's key."""
        return f"countdown/2 {json.dumps(asdict(self), sort_keys=True)}"

    def __call__(self, completion: str, *, reference_answer: str, finish_reason: str) -> Verdict:
        """Judge one completion. Raises on no text whatever."""
        try:
            gold = _reference(reference_answer)
        except UnreadableError as error:
            return unscorable(f"the reference {reference_answer[:80]!r} is no puzzle: {error}")
        found = find_answer(committed(completion[-LONGEST_COMPLETION:]), self.extract, closing=_last_line)
        if finish_reason == "length" and self.truncated == "zero":
            return cut_off(found)
        if found is None:
            return missing(self.extract)
        fault = self._fault(found, gold)
        return decided(fault is None, extracted=found, reason=fault)

    def check_reference(self, reference_answer: str) -> str | None:
        """Why nothing can be verified against this reference, or None. That a puzzle has a solution is not proven."""
        try:
            gold = _reference(reference_answer)
        except UnreadableError as error:
            return str(error)
        return None if reference_answer.lstrip().startswith("{") else self._fault(reference_answer, gold)

    def _fault(self, answer: str, gold: Worth) -> str | None:
        expression, *results = answer.split("=")
        try:
            found = evaluate(expression)
            stated = [evaluate(result).value for result in results]
        except UnreadableError as error:
            return str(error)
        if found.value != gold.value:
            return f"it is worth {_shown(found.value)}, not {_shown(gold.value)}"
        if len(stated) > 1 or any(result != gold.value for result in stated):
            return "what it says to be equal is not the target"
        if found.numbers - gold.numbers:
            return "it uses a number that is not given, or uses one too often"
        return "it leaves a number out" if self.use == "exactly_once" and gold.numbers - found.numbers else None


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2]


def _shown(number: Fraction) -> str:
    text = str(number)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _reference(text: str) -> Worth:
    """Raises UnreadableError."""
    if not text.lstrip().startswith("{"):
        return evaluate(text)
    held = cast("dict[str, Any]", strict_json(text))
    numbers, target = held.get("numbers", held.get("nums")), held.get("target")
    if not isinstance(numbers, list) or not 0 < len(cast("list[Any]", numbers)) <= MOST_NUMBERS:
        raise UnreadableError(f"JSON of a puzzle has numbers, a list of 1 to {MOST_NUMBERS}, and target")
    return Worth(value=_number(target), numbers=Counter(map(_number, cast("list[Any]", numbers))))


def _number(spelled: Any) -> Fraction:
    if not isinstance(spelled, str) or not _NUMBER.fullmatch(spelled):
        raise UnreadableError("its numbers and target must be plain numbers")
    return Fraction(spelled)
