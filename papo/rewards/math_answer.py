"""The verifiable outcome reward for mathematics: one committed answer, equal to the reference by its kind."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib.metadata import version as installed
from math import isfinite
from typing import Literal

from papo.rewards.extraction import PLACES, Place, extract
from papo.rewards.verdict import Verdict, VerdictStatus
from papo.values import value
from papo.verifiers.form import FormOnly, NeedsEngine
from papo.verifiers.judging import Decision, check_reference, decide
from papo.verifiers.pool import shared_pool
from papo.verifiers.rules import Rules

LONGEST_COMPLETION = 2_000_000
"""Characters; of a longer completion only the end is looked at."""
CACHED_REFERENCES = 4096


@value
class MathAnswer:
    r"""1 if the answer equals the reference as mathematics, else 0; the same for training and evaluation.

    The rules are in docs/rewards.md: where an answer may stand (`papo.rewards.extraction`), what is normalised, and
    what equal means for numbers, sets, intervals, tuples, matrices, equations, several answers, units and text. An
    exact value is not its rounded decimal. What form does not decide is decided by mpmath, sympy and math-verify in
    worker processes that can be killed; an answer that uses up its CPU seconds twice is undefined (`timeout`).
    """

    kind: Literal["math_answer"] = "math_answer"
    extract: tuple[Place, ...] = PLACES
    r"""Where the answer may stand, in order of preference: the last `\boxed{…}`, `<answer>…</answer>`, what follows
    `####`, what is stated as the answer, the value that the last sentence ends in. Leave the last two out and a
    completion without a marked answer earns nothing."""
    percent: Literal["value", "unit"] = "value"
    """value: 25% is 0.25. unit: 25% is 25 as well, for data sets that leave the sign out."""
    tolerance: float = 0.0
    """Largest difference that two numbers may have; 0 compares exact values."""
    relative_tolerance: float = 0.0
    """The same, as a share of the reference."""
    truncated: Literal["zero", "score"] = "zero"
    """Completions cut off at the token limit earn 0, or are scored like any other."""
    cpu_seconds: float = 1.5
    """CPU time for one answer in a worker process, tried twice. A busy host takes none of it away."""

    def __post_init__(self) -> None:
        if not self.extract:
            raise ValueError(f"extract is empty: name at least one of {', '.join(PLACES)}.")
        for name in ("tolerance", "relative_tolerance"):
            found = getattr(self, name)
            if not (isfinite(found) and found >= 0):
                raise ValueError(f"{name} is {found}: use 0 or a positive number.")
        if not (isfinite(self.cpu_seconds) and self.cpu_seconds > 0):
            raise ValueError(f"cpu_seconds is {self.cpu_seconds}: use a positive number.")

    @property
    def version(self) -> str:
        """Declared version of the rules, their settings and the engines: part of the record and of the stage's key."""
        return f"math_answer/2 {json.dumps(asdict(self), sort_keys=True)} {_engine_versions()}"

    def __call__(self, completion: str, *, reference_answer: str, finish_reason: str) -> Verdict:
        """Judge one completion, from any thread. Raises on no text whatever.

        A reference that cannot be read gives status `unscorable` and accuracy None, never a free reward.
        """
        fault = _fault_of(reference_answer)
        if fault is not None:
            return _unknown("unscorable", extracted=None, reason=fault)
        found = extract(completion[-LONGEST_COMPLETION:], self.extract)
        if finish_reason == "length" and self.truncated == "zero":
            return _wrong("truncated", extracted=found, reason="cut off at the token limit")
        if found is None:
            return _wrong("no_answer", extracted=None, reason=f"no {', '.join(self.extract)}")
        return self.compare(reference_answer, found)

    def compare(self, reference_answer: str, answer: str) -> Verdict:
        """Judge an answer that has been extracted already."""
        rules = Rules(percent=self.percent, tolerance=self.tolerance, relative_tolerance=self.relative_tolerance)
        try:
            decision = decide(reference_answer, answer, rules=rules, engine=FormOnly())
        except NeedsEngine:
            reply = shared_pool(self.cpu_seconds).ask(reference_answer, answer, rules)
            if reply.same is None:
                status: VerdictStatus = "timeout" if reply.status == "timeout" else "error"
                return _unknown(status, extracted=answer, reason=reply.reason)
            decision = Decision(same=reply.same, canonical=reply.canonical, reason=reply.reason)
        return Verdict(
            accuracy=float(decision.same),
            correct=decision.same,
            status="ok",
            extracted=answer,
            canonical=decision.canonical,
            reason=decision.reason,
        )

    def check_reference(self, reference_answer: str) -> str | None:
        """Why nothing can be verified against this reference, which must also verify against itself; None if it can."""
        fault = _fault_of(reference_answer)
        if fault is not None:
            return fault
        return None if self.compare(reference_answer, reference_answer).correct else "it does not verify against itself"


@cache
def _engine_versions() -> str:
    names: Mapping[str, str] = {name: installed(name) for name in ("math-verify", "mpmath", "sympy")}
    return " ".join(f"{name}={found}" for name, found in names.items())


_FAULTS: dict[str, str | None] = {}


def _fault_of(reference: str) -> str | None:
    """`check_reference`, remembered: a group's rollouts share their reference."""
    if reference not in _FAULTS:
        if len(_FAULTS) >= CACHED_REFERENCES:
            _FAULTS.clear()
        _FAULTS[reference] = check_reference(reference)
    return _FAULTS.get(reference)


def _wrong(status: Literal["truncated", "no_answer"], *, extracted: str | None, reason: str) -> Verdict:
    return Verdict(accuracy=0.0, correct=False, status=status, extracted=extracted, reason=reason)


def _unknown(status: VerdictStatus, *, extracted: str | None, reason: str | None) -> Verdict:
    return Verdict(accuracy=None, correct=None, status=status, extracted=extracted, reason=reason)
