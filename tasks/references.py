"""Which reward a row's task asks for, and what a reference is worth: read by it, and right by its own rule."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Protocol, runtime_checkable

from papo.rewards import (
    AnswerMatch,
    CodeTests,
    Countdown,
    FormalProof,
    KnightsKnaves,
    MathAnswer,
    MultipleChoice,
    ReasoningGym,
    Verdict,
    Verifier,
    ZebraGrid,
)
from tasks.rowfaults import named
from tasks.rowfiles import Row, named_rows

TASKS: dict[str, Verifier] = {
    "math": MathAnswer(),
    "math_answer": MathAnswer(),
    "answer_match": AnswerMatch(),
    "multiple_choice": MultipleChoice(),
    "countdown": Countdown(),
    "knights_knaves": KnightsKnaves(),
    "zebra_grid": ZebraGrid(),
    "reasoning_gym": ReasoningGym(),
    "code_tests": CodeTests(),
    "formal_proof": FormalProof(),
}
SPELLINGS = ("\\boxed{{{}}}", "<answer>{}</answer>", "#### {}", "{}")
"""An answer as completions have it; the last for rewards that look at the whole text."""


@runtime_checkable
class ChecksReference(Protocol):
    """A reward that can say of a reference alone whether anything can be verified against it."""

    def check_reference(self, reference_answer: str) -> str | None: ...


@cache
def unusable(task: str) -> str | None:
    """Why the reward of a task cannot judge on this machine (a library or program that is missing); None if it can."""
    test = getattr(TASKS[task], "self_test", None)
    return None if test is None else test()


def unverifiable(source: Path, column: str, reward: Verifier) -> Iterator[tuple[Row, str | None]]:
    """Each row of a data file with the reason why its reference does not verify against itself, or None if it does."""
    for row in named_rows(source, (column,), skip=0, take=None):
        value = row.values.get(column)
        if row.fault is not None:
            yield row, row.fault
        elif not isinstance(value, str):
            yield row, f"{column} is {named(value)}"
        else:
            yield row, self_check(reward, str(value))


def self_check(reward: Verifier, reference: str) -> str | None:
    """Why a reference is none; of one that is an answer as well, whether it is judged right as a completion."""
    if isinstance(reward, ChecksReference) and not isinstance(reward, MathAnswer):
        return reward.check_reference(reference)
    verdicts = list(spelled_out(reward, reference, reference))
    if any(verdict.correct for verdict in verdicts):
        return None
    told = next((verdict for verdict in verdicts if verdict.status != "no_answer"), verdicts[0])
    return told.reason or "is not equal to itself"


def spelled_out(reward: Verifier, answer: str, reference: str) -> Iterator[Verdict]:
    """Verdicts on an answer in each place where rewards look for one, until one is right: which of them the reward at
    hand looks at is its own setting."""
    for form in SPELLINGS:
        verdict = reward(form.format(answer), reference_answer=reference, finish_reason="stop")
        yield verdict
        if verdict.correct:
            return
