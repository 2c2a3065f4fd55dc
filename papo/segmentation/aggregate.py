"""One score of a completion from the scores of its steps."""

from collections.abc import Sequence
from math import fsum, nan, prod
from typing import Literal

import numpy as np

from papo.rollouts import Values
from papo.steps import Span

StepAggregator = Literal["prod", "min", "last", "mean", "sum_logit"]


def aggregate_steps(scores: Values, *, how: StepAggregator) -> float:
    """The product (Lightman, arXiv:2305.20050; falls with length), the least (Math-Shepherd, implicit PRMs), the last
    (search-and-learn), the mean, or Σ log(s / (1 − s)) of probabilities kept off 0 and 1 by 1e-6.

    NaN if there is no step, or if a step that counts has no score.
    """
    counted = scores[-1:] if how == "last" else scores
    if len(counted) == 0 or np.isnan(counted).any():
        return nan
    match how:
        case "prod":
            return prod(counted.tolist())
        case "min" | "last":
            return float(counted.min())
        case "mean":
            return fsum(counted) / len(counted)
        case "sum_logit":
            bounded = np.clip(counted, 1e-6, 1 - 1e-6)
            return fsum(np.log(bounded) - np.log1p(-bounded))


def segment_scores(
    segments: Sequence[Span], *, steps: Sequence[Span], scores: Sequence[float | None]
) -> list[float | None]:
    """A score for each segment from those of a scorer's own steps, all of them half-open token ranges.

    The mean over the steps that end in the segment; in the middle of a step, the score of that step. None where there
    is neither, or only steps whose scoring failed: such a segment is neither rewarded nor punished.
    """
    known = [(step, score) for step, score in zip(steps, scores, strict=True) if score is not None]
    found: list[float | None] = []
    for start, end in segments:
        ending = [score for (_, last), score in known if start < last <= end]
        around = [score for (first, last), score in known if first < end and last > end]
        chosen = ending or around
        found.append(fsum(chosen) / len(chosen) if chosen else None)
    return found
