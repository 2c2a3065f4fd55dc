"""The verifiable outcome reward: extract one committed answer and compare it with the reference."""

import json
from dataclasses import asdict
from fractions import Fraction
from math import isfinite
from typing import Literal

from papo.rewards.answers import committed, last_answer_tag, last_boxed, normalize_answer, parse_number
from papo.rewards.verdict import Verdict
from papo.values import value

Extractor = Literal["boxed", "answer_tag"]
_EXTRACTORS = {"boxed": last_boxed, "answer_tag": last_answer_tag}


@value
class AnswerMatch:
    r"""1 if the answer equals the reference by the rule of `papo.rewards.answers`, else 0; the same for evaluation.

    Only what the completion commits to counts: the last complete box or answer tag outside the reasoning, as a whole.
    A mention of the right number, a box in the think block or one with two candidates in it earns nothing.
    """

    kind: Literal["answer_match"] = "answer_match"
    extract: tuple[Extractor, ...] = ("boxed", "answer_tag")
    r"""Where the answer stands, in order of preference: the last `\boxed{…}`, the last `<answer>…</answer>`."""
    compare: Literal["exact", "numeric"] = "exact"
    """exact: the same number or the same text. numeric: numbers only, within `tolerance`."""
    tolerance: float = 0.0
    """Largest difference that numeric comparison accepts; 0 compares exact values."""
    truncated: Literal["zero", "score"] = "zero"
    """Completions cut off at the token limit earn 0, or are scored like any other."""

    def __post_init__(self) -> None:
        if not self.extract:
            raise ValueError("extract is empty: name at least one of boxed, answer_tag.")
        if not (isfinite(self.tolerance) and self.tolerance >= 0):
            raise ValueError(f"tolerance is {self.tolerance}: use 0 or a positive number.")
        if self.tolerance > 0 and self.compare != "numeric":
            raise ValueError(f"tolerance is {self.tolerance} but compare is {self.compare}: set compare to numeric.")

    @property
    def version(self) -> str:
        """Declared version of the rule with all settings: part of the record and of the stage's key."""
        return f"answer_match/2 {json.dumps(asdict(self), sort_keys=True)}"

    def __call__(self, completion: str, *, reference_answer: str, finish_reason: str) -> Verdict:
        """Judge one completion, which ends where its end token stood. Raises on no text whatever.

        A reference that cannot be read gives status `unscorable` and accuracy None, never a free reward.
        """
        if (self.compare == "numeric" and parse_number(reference_answer) is None) or not reference_answer.strip():
            reason = f"the reference answer {reference_answer[:80]!r} is not a number this rule can read"
            return Verdict(accuracy=None, correct=None, status="unscorable", reason=reason)
        extracted = self._extract(completion)
        if finish_reason == "length" and self.truncated == "zero":
            return _wrong("truncated", extracted=extracted, reason="cut off at the token limit")
        if extracted is None:
            return _wrong("no_answer", extracted=None, reason=f"no complete {' or '.join(self.extract)}")
        same = self._same(reference_answer, extracted)
        return Verdict(accuracy=float(same), correct=same, status="ok", extracted=extracted)

    def _extract(self, completion: str) -> str | None:
        answer_text = committed(completion)
        found = (_EXTRACTORS[name](answer_text) for name in self.extract)
        return next((answer for answer in found if answer is not None), None)

    def _same(self, reference_answer: str, answer: str) -> bool:
        if self.compare == "exact":
            return normalize_answer(reference_answer) == normalize_answer(answer)
        gold, found = parse_number(reference_answer), parse_number(answer)
        return gold is not None and found is not None and abs(gold - found) <= Fraction(self.tolerance)


def _wrong(status: Literal["truncated", "no_answer"], *, extracted: str | None, reason: str) -> Verdict:
    return Verdict(accuracy=0.0, correct=False, status=status, extracted=extracted, reason=reason)
