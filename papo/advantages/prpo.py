"""PRPO: process advantage against a fixed prior, shifted by the outcome (arXiv:2601.07182; SchumiDing/srpocode)."""

from math import sqrt
from typing import ClassVar, Literal

import numpy as np

from papo.advantages.grpo_process import KnownSteps, Steps, step_credit, steps_of
from papo.advantages.normalize import check_normalizer, group_normalize
from papo.advantages.tokens import Flat, FlatMask, TrainingTokens, token_terms, training_tokens
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, Ragged, ScoredRollouts, Values
from papo.segmentation import EntropyPeaks, Segmenter
from papo.values import value

Outcome = Literal["center", "raw", "zscore", "center_plus_prm_mean", "match_mean"]


@value
class Prpo:
    """A_t = A_proc,t + β: the score of the token's segment against a prior, and one outcome shift a row.

    A prior is no statistic of the batch: equal scores do not vanish, and an optimistic scorer pushes every token up
    (watch process_advantage_mean); match_mean takes that out. Rows without scored segments get β alone.
    """

    kind: Literal["prpo"] = "prpo"
    segmenter: Segmenter = EntropyPeaks()
    """How a completion is cut into the segments that the scorer scores."""
    prpo_norm: Literal["prior", "batch", "softmax"] = "prior"
    """A_proc of a segment's score s: (s − prior mean)/prior std; the same with the mean and sample std of all tokens
    of the batch; or K·softmax(s) − 1 among the K segments of the row."""
    prpo_prior_mean: float = 0.5
    """Mean of the prior."""
    prpo_prior_std: float = sqrt(1 / 24)
    """Deviation of the prior: the code's √(1/24), of a triangular law; a uniform one on [0, 1] has √(1/12)."""
    prpo_outcome: Outcome = "center"
    """β: R − mean_g R (srpo2), R (raw, srpo), z of R (zscore), R + the row's mean score, centred
    (center_plus_prm_mean, srpo3); match_mean is zscore with the row's mean taken out of A_proc."""
    std_ddof: int = 1
    """Of zscore and match_mean: 1 = sample standard deviation, 0 = population."""
    advantage_eps: float = 1e-6
    """Added to the standard deviations of zscore, match_mean and batch."""
    token_level: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_normalizer(std_ddof=self.std_ddof, advantage_eps=self.advantage_eps)
        if not 0 < self.prpo_prior_std < np.inf:
            raise ValueError(f"prpo_prior_std is {self.prpo_prior_std}: scores are divided by it, so use above 0.")

    @property
    def needs(self) -> Needs:
        return Needs(process_scores=True, step_scores=True, entropies=isinstance(self.segmenter, EntropyPeaks))

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Terms with β in `outcome` and the row's mean A_proc in `process`. A failed segment (NaN) has A_proc 0.

        Raises ValueError without step_scores and step_ends.
        """
        ends, scores = steps_of(rollouts, "prpo")
        tokens = training_tokens(rollouts)
        known = ~np.isnan(scores.values)
        placed = Ragged(values=ends.values, offsets=scores.offsets)

        def on_tokens(of_segments: Steps) -> Flat:
            credit = step_credit(of_segments, known, placed, rollouts=rollouts, process_return="step_only")
            return credit[tokens.mask]

        has_score = on_tokens(np.ones(len(known))) != 0.0
        score_of = on_tokens(scores.values)
        process = self._process(score_of, has_score, on_tokens(self._softmax(scores, known)))
        if self.prpo_outcome == "match_mean":
            process = process - tokens.means(process)[tokens.row]
        active = np.zeros(len(rollouts.group), dtype=np.bool_)
        active[tokens.row[has_score]] = True
        shift = self._shift(rollouts, tokens, score_of, has_score)
        return token_terms(tokens, outcome=shift[tokens.row], process=process, process_active=active)

    def _process(self, score_of: Flat, has_score: FlatMask, softmax: Flat) -> Flat:
        if self.prpo_norm == "softmax":
            return np.where(has_score, softmax, 0.0)
        mean, std = self.prpo_prior_mean, self.prpo_prior_std
        if self.prpo_norm == "batch":
            everyone = np.zeros(len(score_of), dtype=np.int64)
            return group_normalize(np.where(has_score, score_of, np.nan), everyone, ddof=1, eps=self.advantage_eps)
        return np.where(has_score, (score_of - mean) / std, 0.0)

    def _softmax(self, scores: Ragged, known: KnownSteps) -> Steps:
        """K·softmax − 1 of each segment's score among the scored ones of its row."""
        weights = np.zeros(len(scores.values))
        for row in range(scores.rows):
            own = slice(int(scores.offsets[row]), int(scores.offsets[row + 1]))
            if known[own].any():
                raised = np.where(known[own], np.exp(scores.row(row) - np.nanmax(scores.row(row))), 0.0)
                weights[own] = known[own].sum() * raised / raised.sum() - 1
        return weights

    def _shift(self, rollouts: ScoredRollouts, tokens: TrainingTokens, score_of: Flat, has_score: FlatMask) -> Values:
        """β of each row; 0 for rows without a reward."""
        rewards, group = rollouts.outcome, rollouts.group
        match self.prpo_outcome:
            case "raw":
                return np.nan_to_num(rewards, nan=0.0)
            case "center":
                return group_normalize(rewards, group, scale="none")
            case "center_plus_prm_mean":
                return group_normalize(rewards + tokens.means(score_of, where=has_score), group, scale="none")
            case "zscore" | "match_mean":
                return group_normalize(rewards, group, ddof=self.std_ddof, eps=self.advantage_eps)
