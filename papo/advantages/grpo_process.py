"""GRPO with process supervision (DeepSeekMath, arXiv:2402.03300 §4.1.3): a reward a step."""

from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float64

from papo.advantages.normalize import check_normalizer, group_normalize, has_peers
from papo.advantages.tokens import token_terms, training_tokens
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, Ragged, ScoredRollouts
from papo.values import value

ProcessReturn = Literal["suffix_sum", "suffix_mean", "step_only", "min"]
Steps = Float64[np.ndarray, " steps"]
KnownSteps = Bool[np.ndarray, " steps"]


@value
class GrpoProcess:
    """A_t = Σ over the steps that end at t or later of r̃, the step rewards z-scored over all steps of the group.

    The outcome reward is not used. Tokens after the last step, and rows without steps, get 0. Rows with more steps
    weigh more in the mean, and with suffix_sum early tokens get larger sums in rows with many steps.
    """

    kind: Literal["grpo_process"] = "grpo_process"
    process_return: ProcessReturn = "suffix_sum"
    """What a token gets of the normalised rewards of its own and all later steps: their sum (the paper), their mean,
    its own step's alone, or the least of them (PURE, arXiv:2504.15275)."""
    std_ddof: int = 1
    """1 = sample standard deviation, 0 = population."""
    advantage_eps: float = 1e-6
    """Added to the standard deviation."""
    token_level: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_normalizer(std_ddof=self.std_ddof, advantage_eps=self.advantage_eps)

    @property
    def needs(self) -> Needs:
        return Needs(process_scores=True, step_scores=True)

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Terms, all in `process`. A failed step (NaN) leaves the statistics and adds nothing.

        A row that alone in its group has scored steps has nothing to be compared with: it gets 0.

        Raises ValueError without step_scores and step_ends.
        """
        ends, scores = steps_of(rollouts, "grpo_process")
        row = np.repeat(np.arange(scores.rows), scores.lengths)
        has_steps = np.bincount(row[~np.isnan(scores.values)], minlength=scores.rows) > 0
        compared = has_peers(rollouts.outcome, rollouts.group, where=has_steps)
        known = np.where(compared[row], scores.values, np.nan)
        rewards = group_normalize(known, rollouts.group[row], ddof=self.std_ddof, eps=self.advantage_eps)
        tokens = training_tokens(rollouts)
        credit = step_credit(rewards, ~np.isnan(known), Ragged(values=ends.values, offsets=scores.offsets),
                             rollouts=rollouts, process_return=self.process_return)  # fmt: skip
        active = np.zeros(len(rollouts.group), dtype=np.bool_)
        active[row[rewards != 0.0]] = True
        process = credit[tokens.mask]
        return token_terms(tokens, outcome=np.zeros_like(process), process=process, process_active=active)


def steps_of(rollouts: ScoredRollouts, name: str) -> tuple[Ragged, Ragged]:
    """Ends and scores of the steps. Raises ValueError if either is missing or they do not fit each other."""
    ends, scores = rollouts.step_ends, rollouts.step_scores
    if ends is None or scores is None:
        raise ValueError(f"{name} needs step_ends and step_scores, one score a step: use a scorer that scores steps.")
    if not np.array_equal(ends.offsets, scores.offsets):
        raise ValueError("step_ends and step_scores differ in their number of steps: give one score for each step.")
    for row in range(ends.rows):
        bounds = [-1.0, *ends.row(row), float(rollouts.lengths[row] - 1)]
        if any(a > b for a, b in pairwise(bounds)):
            raise ValueError(
                f"step_ends of row {row} are {ends.row(row)}: they are the last tokens of the steps, so they never fall"
                f" and stay below its {rollouts.lengths[row]} tokens (a step without a token ends where it began)."
            )
    return ends, scores


def step_credit(
    rewards: Steps, known: KnownSteps, ends: Ragged, *, rollouts: ScoredRollouts, process_return: ProcessReturn
) -> Float64[np.ndarray, " tokens"]:
    """What each token gets, masked ones included: one number for the tokens of a step, 0 after the last step."""
    credit = np.zeros(int(rollouts.lengths.sum()))
    starts = np.cumsum(rollouts.lengths) - rollouts.lengths
    for row in range(ends.rows):
        own = slice(int(ends.offsets[row]), int(ends.offsets[row + 1]))
        values = _step_returns(rewards[own], known[own], process_return)
        begin = 0
        for last, number in zip(ends.row(row), values, strict=True):
            credit[starts[row] + begin : starts[row] + int(last) + 1] = number
            begin = int(last) + 1
    return credit


def _step_returns(rewards: Steps, known: KnownSteps, process_return: ProcessReturn) -> Steps:
    present = np.where(known, rewards, 0.0)
    if process_return == "step_only":
        return present
    if process_return == "min":
        least = np.minimum.accumulate(np.where(known, rewards, np.inf)[::-1])[::-1]
        return np.where(np.isinf(least), 0.0, least)
    sums = np.cumsum(present[::-1])[::-1]
    if process_return == "suffix_mean":
        return sums / np.maximum(np.cumsum(known[::-1])[::-1], 1)
    return sums
