"""Between frames and the method's arrays: rows in, rows out, in the same order."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from papo.advantages import Prime, implicit_token_rewards, kl_rewards, prime_normalized, zero_reason
from papo.algorithm import Algorithm
from papo.errors import DataError
from papo.rollouts import AdvantageTerms, Ragged, ScoredRollouts

KEY = ["group_id", "sample_index"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFrames:
    """An iteration's rows as the stages left them; None where a stage had nothing to do."""

    rollouts: pl.DataFrame
    outcomes: pl.DataFrame
    scores: pl.DataFrame | None = None
    logprobs: pl.DataFrame | None = None
    values: pl.DataFrame | None = None
    implicit: pl.DataFrame | None = None

    def of_groups(self, groups: pl.Series) -> "BatchFrames":
        """The rows of some groups only."""
        named = groups.implode()

        def of(part: pl.DataFrame) -> pl.DataFrame:
            return part.filter(pl.col("group_id").is_in(named))

        return BatchFrames(
            rollouts=of(self.rollouts),
            outcomes=of(self.outcomes),
            scores=self.scores if self.scores is None else of(self.scores),
            logprobs=self.logprobs if self.logprobs is None else of(self.logprobs),
            values=self.values if self.values is None else of(self.values),
            implicit=self.implicit if self.implicit is None else of(self.implicit),
        )


def scored_rollouts(
    frames: BatchFrames, *, algorithm: Algorithm, iteration: int, kl_coef: float | None = None
) -> ScoredRollouts:
    """What estimators look at, one entry for each row of the rollouts; null rewards and scores become NaN.

    `kl_coef`: the present weight of the KL in the reward, where a controller moves it.
    """
    joined = _joined(frames)
    _check_relations(joined)
    steps = frames.scores is not None
    scored = ScoredRollouts(
        group=joined["group_id"].cast(pl.Int64).to_numpy(),
        outcome=_numbers(joined["outcome_reward"]),
        correct=joined["correct"].fill_null(False).to_numpy().astype(bool),
        process=_numbers(joined["process_score"]),
        lengths=joined["length"].cast(pl.Int64).to_numpy(),
        step_ends=_step_ends(joined["step_ends"]) if steps else None,
        step_scores=_ragged(joined["step_scores"]) if steps else None,
        components=_components(joined["components"]),
        token_rewards=_token_rewards(joined, algorithm, kl_coef),
        token_values=_ragged(joined["token_values"]) if frames.values is not None else None,
        final_values=_numbers(joined["final_value"]) if frames.values is not None else None,
        token_mask=_masks(joined["completion_mask"]),
        truncated=(joined["finish_reason"] == "length").to_numpy().astype(bool),
        iteration=iteration,
    )
    return _normalized(scored, algorithm) if frames.implicit is not None else scored


def _normalized(scored: ScoredRollouts, algorithm: Algorithm) -> ScoredRollouts:
    """With the implicit PRM's rewards as `prime_norm` says, by the rows and tokens that take part."""
    estimator, rewards = algorithm.advantage, scored.token_rewards
    if rewards is None or not isinstance(estimator, Prime):
        return scored
    normalized = prime_normalized(
        rewards, prime_norm=algorithm.implicit_prm.prime_norm, where=estimator.trained(scored).mask
    )
    return replace(scored, token_rewards=normalized)


def _joined(frames: BatchFrames) -> pl.DataFrame:
    rows = frames.rollouts.select(
        *KEY, pl.col("token_ids").list.len().alias("length"), "completion_mask", "finish_reason"
    )
    rights = (
        (frames.outcomes, ("outcome_reward", "correct", "components")),
        (frames.scores, ("process_score", "step_ends", "step_scores")),
        (frames.logprobs, ("old_logprobs", "ref_logprobs")),
        (frames.values, ("token_values", "final_value")),
        (frames.implicit, ("prm_logprobs",)),
    )
    for right, columns in rights:
        if right is not None:
            _check_keys(frames.rollouts, right, named=", ".join(columns))
            rows = rows.join(right.select(*KEY, *columns), on=KEY, how="left", maintain_order="left", validate="1:1")
    return rows if frames.scores is not None else rows.with_columns(process_score=pl.lit(None, dtype=pl.Float64))


def _check_keys(rollouts: pl.DataFrame, right: pl.DataFrame, *, named: str) -> None:
    """Each rollout has its row and no other has: a row that is missing would pass for one without a reward."""
    for one, other, what in ((rollouts, right, "lacks"), (right, rollouts, "is no rollout's:")):
        lonely = one.select(KEY).join(other.select(KEY), on=KEY, how="anti")
        if lonely.height:
            group, sample = lonely.row(0)
            raise DataError(
                f"(group_id {group}, sample_index {sample}) {what} {named}, and so do {lonely.height - 1} other rows. "
                "The frames of an iteration belong together, row by row: make them again."
            )


def _check_relations(joined: pl.DataFrame) -> None:
    """Lists of a row have one entry a token of its rollout, and steps end inside it."""
    tokens = pl.col("length")
    wrong = {
        name: pl.col(name).list.len() != tokens
        for name in ("old_logprobs", "ref_logprobs", "token_values", "prm_logprobs")
        if name in joined.columns
    }
    if "step_ends" in joined.columns:
        wrong["step_ends"] = pl.col("step_ends").list.max() > tokens
    for name, is_wrong in wrong.items():
        faulty = joined.filter(is_wrong.fill_null(False))
        if faulty.height:
            group, sample, length = faulty.select(*KEY, "length").row(0)
            raise DataError(
                f"{name} of (group_id {group}, sample_index {sample}) does not fit its {length} tokens, nor do those "
                f"of {faulty.height - 1} other rows. Credit would land on the wrong tokens: make the frame again."
            )


def _token_rewards(joined: pl.DataFrame, algorithm: Algorithm, kl_coef: float | None) -> Ragged | None:
    """The implicit PRM's rewards, or the KL in the reward; None where the algorithm has neither."""
    if "prm_logprobs" in joined.columns:
        prm = algorithm.implicit_prm
        return implicit_token_rewards(
            _ragged(joined["prm_logprobs"]),
            _ragged(joined["ref_logprobs" if algorithm.prm_reference else "old_logprobs"]),
            beta=prm.beta_train,
            granularity=prm.prime_granularity,
            last_token=prm.prime_last_token,
        )
    if not algorithm.use_kl_in_reward:
        return None
    return kl_rewards(
        _ragged(joined["old_logprobs"]),
        _ragged(joined["ref_logprobs"]),
        kl_coef=algorithm.kl_coef if kl_coef is None else kl_coef,
        kl_penalty=algorithm.kl_penalty,
    )


def _numbers(column: pl.Series) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return column.fill_null(float("nan")).to_numpy().astype(np.float64)


def _components(lists: pl.Series) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """(rollouts, rewards); NaN where a row has none."""
    values, count = _ragged(lists).values, max(len(lists), 1)
    return values.reshape(len(lists), len(values) // count)


def _ragged(lists: pl.Series) -> Ragged:
    """One list a row; an entry that is null becomes NaN."""
    lengths = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    flat = lists.drop_nulls().explode(empty_as_null=False).cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return Ragged(values=flat.astype(np.float64), offsets=np.concatenate([[0], np.cumsum(lengths)]))


def _step_ends(lists: pl.Series) -> Ragged:
    """Ends that exclude their token become the token that they end with."""
    ends = _ragged(lists)
    return Ragged(values=np.maximum(ends.values - 1.0, 0.0), offsets=ends.offsets)


def _masks(lists: pl.Series) -> Ragged | None:
    """None where every token trains, which is the rule."""
    masks = _ragged(lists.list.eval(pl.element().cast(pl.Float64)))
    return None if bool(masks.values.all()) else masks


def advantages_frame(rollouts: pl.DataFrame, scored: ScoredRollouts, terms: AdvantageTerms) -> pl.DataFrame:
    """The estimator's terms as a frame; rows that are to leave loss and divisor are null."""
    excluded = np.zeros(len(scored.group), dtype=bool) if terms.excluded is None else terms.excluded
    known = pl.Series(scored.scorable & ~excluded)
    numbers = {"outcome_advantage": terms.outcome, "process_advantage": terms.process, "advantage": terms.total}
    columns = [
        pl.select(pl.when(known).then(pl.Series(values)).otherwise(None).alias(name)).to_series()
        for name, values in numbers.items()
    ]
    tokens = None
    if terms.tokens is not None:
        ragged = terms.tokens
        tokens = [(terms.total[row] + ragged.row(row)).tolist() for row in range(ragged.rows)]
    returns = None if terms.returns is None else [terms.returns.row(row).tolist() for row in range(rollouts.height)]
    nothing = [None] * rollouts.height
    return rollouts.select(KEY).with_columns(
        *columns,
        pl.Series("token_advantages", tokens or nothing, dtype=pl.List(pl.Float64)),
        pl.Series("returns", returns or nothing, dtype=pl.List(pl.Float64)),
        pl.Series("process_active", terms.process_active, dtype=pl.Boolean),
        pl.Series("zero_reason", zero_reason(scored, terms), dtype=pl.String),
    )


def dropped_frame(rollouts: pl.DataFrame) -> pl.DataFrame:
    """Rows of groups that dynamic sampling left out: no credit, and why."""
    nothing = [None] * rollouts.height
    return rollouts.select(KEY).with_columns(
        *(
            pl.Series(name, nothing, dtype=pl.Float64)
            for name in ("outcome_advantage", "process_advantage", "advantage")
        ),
        *(pl.Series(name, nothing, dtype=pl.List(pl.Float64)) for name in ("token_advantages", "returns")),
        pl.Series("process_active", [False] * rollouts.height, dtype=pl.Boolean),
        pl.Series("zero_reason", ["filtered"] * rollouts.height, dtype=pl.String),
    )
