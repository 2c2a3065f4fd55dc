"""What an advantage estimator reads and what it returns: plain numpy arrays, one entry a rollout.

Rows may stand in any order: a group is the set of rows with one `group` id, which is one draw of one data row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int

Groups = Int[np.ndarray, " rollouts"]
Values = Float64[np.ndarray, " rollouts"]
Mask = Bool[np.ndarray, " rollouts"]
Lengths = Int[np.ndarray, " rollouts"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ragged:
    """One list of numbers a rollout, of different lengths: row i is values[offsets[i]:offsets[i + 1]]."""

    values: Float64[np.ndarray, " items"]
    offsets: Int[np.ndarray, " rollouts_plus_one"]

    def __post_init__(self) -> None:
        ends = (int(self.offsets[0]), int(self.offsets[-1])) if len(self.offsets) else (0, -1)
        if ends != (0, len(self.values)) or np.any(np.diff(self.offsets) < 0):
            raise ValueError(
                f"offsets of ragged rows must rise from 0 to {len(self.values)}, the number of values, unlike"
                f" {self.offsets}: build them as the cumulative sum of the row lengths, with a leading 0."
            )

    def row(self, index: int) -> Float64[np.ndarray, " row_items"]:
        """The numbers of one rollout (a view)."""
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    @property
    def rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Lengths:
        """Numbers in each row."""
        return np.diff(self.offsets)


def ragged(rows: Sequence[Float64[np.ndarray, " _"]]) -> Ragged:
    """The given rows, one after the other."""
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64)
    return Ragged(values=np.concatenate([np.empty(0), *rows]), offsets=offsets)


PER_TOKEN = ("token_rewards", "token_values", "token_entropies", "token_mask")
"""Fields of `ScoredRollouts` with one entry a completion token."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredRollouts:
    """Rollouts of a whole optimisation batch with all that was found out about them.

    Raises ValueError if the arrays disagree in length or a reward is infinite.
    """

    group: Groups
    """Group id: rows that share it are compared with each other."""
    outcome: Values
    """Outcome reward after shaping (format, length); NaN = the verifier could not decide, never the same as wrong."""
    correct: Mask
    """Whether the outcome *before* shaping says right. PAPO's correct set C."""
    process: Values
    """Process score of the whole completion; NaN = not asked for, or failed."""
    lengths: Lengths
    """Completion tokens, the end token included."""
    step_ends: Ragged | None = None
    """Index of the last token of each step (process-supervised GRPO)."""
    step_scores: Ragged | None = None
    """Score of each step, one for each entry of `step_ends`; NaN = failed."""
    token_rewards: Ragged | None = None
    """Reward of each token: the implicit PRM's (PRIME), or the KL penalty in the reward (PPO, REINFORCE++)."""
    token_values: Ragged | None = None
    """The critic's value before each token (GAE)."""
    token_entropies: Ragged | None = None
    """Entropy of the policy at each token, in nats, at rollout time (PRPO's segmentation)."""
    token_mask: Ragged | None = None
    """1 on tokens that train, 0 on those that a tool put in; None = all train."""
    truncated: Mask | None = None
    """Rows that were cut off at the token limit (GAE's rule for them); None = none."""
    final_values: Values | None = None
    """The critic's value after the last token: what a truncated row may still earn (GAE's bootstrap)."""
    components: Float64[np.ndarray, "rollouts rewards"] | None = None
    """Several rewards a rollout, NaN = this one has none (multi-reward aggregation)."""
    iteration: int = 0
    """Iteration that they belong to, counted from 0, for weights that follow a schedule."""

    def __post_init__(self) -> None:
        rows = len(self.group)
        columns = {"outcome": self.outcome, "correct": self.correct, "process": self.process, "lengths": self.lengths}
        for name, column in columns.items():
            if column.shape != (rows,):
                raise ValueError(f"{name} has shape {column.shape} but group has {rows} rows: one entry a rollout.")
        for name in ("outcome", "process"):
            if np.isinf(columns[name]).any():
                row = int(np.flatnonzero(np.isinf(columns[name]))[0])
                raise ValueError(f"{name} of row {row} is infinite: give a finite reward, or NaN if it has none.")
        for name in ("step_ends", "step_scores", *PER_TOKEN):
            lists: Ragged | None = getattr(self, name)
            if lists is not None and lists.rows != rows:
                raise ValueError(f"{name} has {lists.rows} rows, but group has {rows}: give one list a rollout.")
            if name in PER_TOKEN and lists is not None and not np.array_equal(lists.lengths, self.lengths):
                row = int(np.flatnonzero(lists.lengths != self.lengths)[0])
                raise ValueError(
                    f"{name} of row {row} has {lists.lengths[row]} entries, but its completion has {self.lengths[row]}"
                    " tokens: give one a token, never padded."
                )

    @property
    def scorable(self) -> Mask:
        """Rows whose outcome reward is known: the others leave statistics, loss and divisor."""
        return ~np.isnan(self.outcome)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdvantageTerms:
    """The advantage of each rollout, split in the parts that explain it. Finite everywhere."""

    outcome: Values
    """Part that the outcome reward gives."""
    process: Values
    """Part that the process score gives, its weight (lambda_process) applied."""
    process_active: Mask
    """Rows whose process score was compared with others; such a row's part can still be 0, at the mean."""
    tokens: Ragged | None = None
    """What is added to the row's advantage token by token, for estimators that tell tokens apart.

    It sums to 0 over the row's training tokens, so `total` is the row's mean advantage.
    """
    returns: Ragged | None = None
    """What the critic is trained towards, one number a token (GAE)."""
    excluded: Mask | None = None
    """Rows that leave the loss and its divisor although they have a reward (GAE's `truncation: mask`)."""

    @property
    def total(self) -> Values:
        """outcome + process: the advantage of every token of the row, before `tokens` is added."""
        return self.outcome + self.process

    @property
    def silent(self) -> Mask:
        """Rows that have advantage 0 at every token, so that nothing is learnt from them."""
        still = self.total == 0.0
        if self.tokens is not None:
            varied = np.zeros(len(still), dtype=np.bool_)
            varied[np.repeat(np.arange(len(still)), self.tokens.lengths)[self.tokens.values != 0.0]] = True
            still &= ~varied
        return still
