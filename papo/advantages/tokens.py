"""Token by token: what the estimators share that tell the tokens of a row apart.

All work is on *training tokens*, those under the completion mask of rows with a reward, one after the other in a flat
array. A masked token is skipped: what comes after it follows directly on what came before.
"""

from dataclasses import dataclass
from math import fsum, sqrt

import numpy as np
from jaxtyping import Bool, Float64, Int

from papo.rollouts import AdvantageTerms, Mask, Ragged, ScoredRollouts, Values

Flat = Float64[np.ndarray, " training"]
FlatMask = Bool[np.ndarray, " training"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingTokens:
    """Where the training tokens stand among all tokens."""

    mask: Bool[np.ndarray, " tokens"]
    """Which tokens train."""
    row: Int[np.ndarray, " training"]
    """The row of each training token."""
    position: Int[np.ndarray, " training"]
    """Index of each training token in its completion, masked ones counted."""
    counts: Int[np.ndarray, " rollouts"]
    """Training tokens of each row."""
    offsets: Int[np.ndarray, " rollouts_plus_one"]
    """Where each row starts among all tokens."""

    def pick(self, lists: Ragged) -> Flat:
        """The entries at training tokens."""
        return lists.values[self.mask]

    @property
    def last(self) -> Int[np.ndarray, " rows_with_tokens"]:
        """Flat index of each row's last training token, for the rows that have any."""
        return (np.cumsum(self.counts) - 1)[self.counts > 0]

    def sums(self, flat: Flat) -> Values:
        """The sum over each row's training tokens, exactly rounded."""
        ends = np.cumsum(self.counts)
        return np.array([fsum(flat[end - count : end]) for end, count in zip(ends, self.counts, strict=True)])

    def means(self, flat: Flat, *, where: FlatMask | None = None) -> Values:
        """The mean over each row's training tokens (`where`); the value itself where all are equal, 0 without any."""
        counted = np.ones(len(flat), dtype=np.bool_) if where is None else where
        counts = np.bincount(self.row[counted], minlength=len(self.counts))
        means = self.sums(np.where(counted, flat, 0.0)) / np.maximum(counts, 1)
        starts = np.cumsum(self.counts) - self.counts
        for row in np.flatnonzero(counts):
            tokens = slice(starts[row], starts[row] + self.counts[row])
            own = flat[tokens][counted[tokens]]
            if own.min() == own.max():
                means[row] = own[0]
        return means

    def spread(self, flat: Flat) -> Ragged:
        """One entry a token: the given ones at training tokens, 0 elsewhere."""
        values = np.zeros(len(self.mask))
        values[self.mask] = flat
        return Ragged(values=values, offsets=self.offsets)

    def suffix_sums(self, flat: Flat, *, discount: float) -> Flat:
        """Σ_{s ≥ t} discount^(s − t) · x_s over the training tokens of the row."""
        width = int(self.counts.max(initial=0))
        column = np.arange(len(flat)) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        table = np.zeros((len(self.counts), width + 1))
        table[self.row, column] = flat
        for at in range(width - 1, -1, -1):
            table[:, at] += discount * table[:, at + 1]
        return table[self.row, column]


def training_tokens(rollouts: ScoredRollouts, *, where: Mask | None = None) -> TrainingTokens:
    """The tokens that train: under the mask, of rows with a reward, and `where` says so."""
    rows = rollouts.scorable if where is None else rollouts.scorable & where
    row_of = np.repeat(np.arange(len(rows)), rollouts.lengths)
    mask = rows[row_of]
    if rollouts.token_mask is not None:
        mask = mask & (rollouts.token_mask.values != 0)
    offsets = np.concatenate([[0], np.cumsum(rollouts.lengths)]).astype(np.int64)
    return TrainingTokens(
        mask=mask,
        row=row_of[mask],
        position=(np.arange(len(row_of)) - offsets[row_of])[mask],
        counts=np.bincount(row_of[mask], minlength=len(rows)),
        offsets=offsets,
    )


def token_terms(
    tokens: TrainingTokens,
    *,
    outcome: Flat,
    process: Flat,
    process_active: Mask | None = None,
    returns: Ragged | None = None,
    excluded: Mask | None = None,
) -> AdvantageTerms:
    """Terms of a row from those of its tokens: their means, and what each token has beyond the row's mean."""
    outcome_means, process_means = tokens.means(outcome), tokens.means(process)
    beyond = (outcome - outcome_means[tokens.row]) + (process - process_means[tokens.row])
    return AdvantageTerms(
        outcome=outcome_means + 0.0,
        process=process_means + 0.0,
        process_active=np.zeros(len(tokens.counts), dtype=np.bool_) if process_active is None else process_active,
        tokens=tokens.spread(beyond + 0.0),
        returns=returns,
        excluded=excluded,
    )


def whitening(flat: Flat, *, eps: float, count_eps: float = 0.0) -> tuple[float, float]:
    """Mean and scale that whiten: (x − mean) · scale has mean 0 and sample variance 1 over all of `flat`.

    scale = 1/√(var + eps), 0 where all are equal or there is only one: nothing tells them apart. `count_eps` is added
    to the number of entries where a mean is taken (verl: 1e-8, ours 0; with it, equal entries give almost 0).
    """
    if len(flat) < 2 or (count_eps == 0 and flat.min() == flat.max()):
        return (float(flat[0]) if len(flat) else 0.0), 0.0
    count = len(flat)
    mean = fsum(flat) / (count + count_eps)
    variance = fsum((flat - mean) ** 2) / (count + count_eps) * count / (count - 1)
    return mean, 1.0 / sqrt(variance + eps)


def whitened(flat: Flat, *, eps: float, count_eps: float = 0.0) -> Flat:
    """`flat` with mean 0 and sample variance 1; see `whitening`."""
    mean, scale = whitening(flat, eps=eps, count_eps=count_eps)
    return (flat - mean) * scale + 0.0


def terminal_rewards(rollouts: ScoredRollouts, tokens: TrainingTokens) -> Flat:
    """The reward of each training token: the token rewards, and the outcome on the row's last one."""
    rewards = np.zeros(len(tokens.row)) if rollouts.token_rewards is None else tokens.pick(rollouts.token_rewards)
    rewards[tokens.last] += rollouts.outcome[tokens.counts > 0]
    return rewards


def penalised_outcome(rollouts: ScoredRollouts) -> Values:
    """The outcome with the row's token rewards added: the KL in the reward of a whole completion, before any baseline.

    NaN where the outcome is.
    """
    if rollouts.token_rewards is None:
        return rollouts.outcome
    tokens = training_tokens(rollouts)
    return rollouts.outcome + tokens.sums(tokens.pick(rollouts.token_rewards))


def check_discount(**discounts: float) -> None:
    """Raise ValueError unless each discount is within [0, 1]."""
    for name, discount in discounts.items():
        if not 0 <= discount <= 1:
            raise ValueError(f"{name} is {discount}: a discount is within 0 and 1.")
