"""A process scorer that pays for length: what a raw "sum over steps" PRM looks like to a policy that games it."""

from typing import Literal

from papo.scorers.step_scores import StepScores
from papo.steps import line_steps
from papo.values import value


@value
class EquationLines:
    """`per_line` for each line of the working with an "=" in it, right or wrong, finished or not; summed.

    Kept to show reward hacking: a rambling completion outearns a right one, and a summed reward collapses.
    """

    kind: Literal["equation_lines"] = "equation_lines"
    per_line: float = 0.25
    """Score of one line; below about 0.1 the sum no longer outgrows the outcome reward."""

    @property
    def version(self) -> str:
        """Declared version of the rule with its settings."""
        return f"equation_lines/1 per_line={self.per_line}"

    def __call__(self, prompt: str, completion: str, *, reference_answer: str, correct: bool) -> StepScores:
        """`per_line` or 0 for each line, their sum as the aggregate. Only `completion` is looked at."""
        spans = line_steps(completion)
        scores = tuple(self.per_line if "=" in completion[start:end] else 0.0 for start, end in spans)
        return StepScores(spans=spans, scores=scores, aggregate=sum(scores, 0.0), status="ok" if spans else "no_steps")
