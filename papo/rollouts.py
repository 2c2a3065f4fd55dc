"""What an advantage estimator reads and what it returns: plain numpy arrays, one entry a rollout.

Rows may stand in any order: a group is the set of rows with one `group` id, which is one draw of one data row.
"""

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
        for name in ("step_ends", "step_scores", "token_rewards", "token_values", "token_entropies"):
            ragged: Ragged | None = getattr(self, name)
            if ragged is not None and ragged.rows != rows:
                raise ValueError(f"{name} has {ragged.rows} rows, but group has {rows}: give one list a rollout.")

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
    """What is added to the row's advantage token by token, for estimators that tell tokens apart."""

    @property
    def total(self) -> Values:
        """outcome + process: the advantage of every token of the row, before `tokens` is added."""
        return self.outcome + self.process
