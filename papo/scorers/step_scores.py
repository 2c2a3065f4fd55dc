"""What a process scorer says about one completion."""

from dataclasses import dataclass
from typing import Literal

from papo.steps import Span

ScoreStatus = Literal["ok", "no_steps", "no_format", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepScores:
    """One score a step, and one for the whole. Raises ValueError if there is not exactly one score for each step."""

    spans: tuple[Span, ...]
    """Character range of each step in the completion, in order, end exclusive."""
    scores: tuple[float | None, ...]
    """Score of each step; None = failed."""
    aggregate: float | None
    """Score of the whole completion; None = failed: neither reward nor punishment."""
    status: ScoreStatus
    """ok; no_steps, no_format: scored, but with nothing to score; failed: aggregate is None."""

    def __post_init__(self) -> None:
        if len(self.spans) != len(self.scores):
            raise ValueError(f"{len(self.scores)} scores for {len(self.spans)} steps: one for each, None if failed.")
        if (self.aggregate is None) != (self.status == "failed"):
            raise ValueError(f"status is {self.status} but aggregate is {self.aggregate}: failed means no aggregate.")
