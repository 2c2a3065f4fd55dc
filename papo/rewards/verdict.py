"""What a verifier says about one completion, and how the outcome reward is made of it."""

from dataclasses import dataclass
from typing import Literal

VerdictStatus = Literal[
    "ok", "no_answer", "truncated", "compile_error", "unscorable", "timeout", "error", "judge_failed"
]
JudgedBy = Literal["verifier", "reward_model", "llm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A failed check is data: `accuracy` None means unknown, and is never the same as wrong."""

    accuracy: float | None
    """Reward of the answer, 0 to 1; None = could not be decided, the row leaves statistics, loss and divisor."""
    correct: bool | None
    """Whether the answer is right, before any shaping; None with `accuracy`."""
    format: float | None = None
    """Reward of the format, 0 or 1; None = not checked."""
    status: VerdictStatus
    """ok: an answer was compared. no_answer, truncated, compile_error: wrong. Of the others, accuracy is None."""
    extracted: str | None = None
    """The answer that was found, as written."""
    canonical: str | None = None
    """The answer as it was read, where the verifier reads more than text."""
    reason: str | None = None
    """Why, in words, where the status alone does not say it."""
    judged_by: JudgedBy = "verifier"
    """Whose word `correct` is: a verifier's, or only what a reward model or an LLM makes of the completion."""

    def __post_init__(self) -> None:
        if (self.accuracy is None) != (self.correct is None):
            raise ValueError(f"accuracy is {self.accuracy} but correct is {self.correct}: both are known, or neither.")


def shape_reward(
    verdict: Verdict, *, format_weight: float = 0.0, accuracy_scale: float = 1.0, accuracy_offset: float = 0.0
) -> float | None:
    """outcome_reward = accuracy_scale · accuracy + accuracy_offset + format_weight · format; None if accuracy is.

    A scale of 2 and an offset of −1 give DAPO's ±1; a format weight of 0.1 is the RLVR preset's. Raises ValueError
    if the format has a weight but was not checked.
    """
    if verdict.accuracy is None:
        return None
    reward = accuracy_scale * verdict.accuracy + accuracy_offset
    if format_weight == 0.0:
        return reward
    if verdict.format is None:
        raise ValueError(f"format_weight is {format_weight} but the verdict has no format: check the format first.")
    return reward + format_weight * verdict.format
