"""Between frames and the method's arrays: rows in, rows out, in the same order."""

import numpy as np
import polars as pl

from papo.advantages import zero_reason
from papo.rollouts import AdvantageTerms, Ragged, ScoredRollouts

KEY = ["group_id", "sample_index"]


def scored_rollouts(
    rollouts: pl.DataFrame, outcomes: pl.DataFrame, scores: pl.DataFrame | None, *, iteration: int
) -> ScoredRollouts:
    """What estimators look at, one entry for each row of `rollouts`; null rewards and scores become NaN."""
    joined = rollouts.select(*KEY, pl.col("token_ids").list.len().alias("length")).join(
        outcomes.select(*KEY, "outcome_reward", "correct"), on=KEY, how="left", maintain_order="left", validate="1:1"
    )
    if scores is None:
        joined = joined.with_columns(process_score=pl.lit(None, dtype=pl.Float64))
    else:
        steps = scores.select(*KEY, "process_score", "step_ends", "step_scores")
        joined = joined.join(steps, on=KEY, how="left", maintain_order="left", validate="1:1")
    return ScoredRollouts(
        group=joined["group_id"].cast(pl.Int64).to_numpy(),
        outcome=joined["outcome_reward"].fill_null(float("nan")).to_numpy().astype(np.float64),
        correct=joined["correct"].fill_null(False).to_numpy().astype(bool),
        process=joined["process_score"].fill_null(float("nan")).to_numpy().astype(np.float64),
        lengths=joined["length"].cast(pl.Int64).to_numpy(),
        step_ends=None if scores is None else _ragged(joined["step_ends"], last=True),
        step_scores=None if scores is None else _ragged(joined["step_scores"], last=False),
        iteration=iteration,
    )


def _ragged(lists: pl.Series, *, last: bool) -> Ragged:
    """One list a row; with `last`, ends that exclude their token become the token that they end with."""
    lengths = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    flat = lists.drop_nulls().explode(empty_as_null=False).cast(pl.Float64).fill_null(float("nan")).to_numpy()
    values = np.maximum(flat - 1.0, 0.0) if last else flat
    return Ragged(values=values.astype(np.float64), offsets=np.concatenate([[0], np.cumsum(lengths)]))


def advantages_frame(rollouts: pl.DataFrame, scored: ScoredRollouts, terms: AdvantageTerms) -> pl.DataFrame:
    """The estimator's terms as a frame; unscorable rows are null, so that they leave loss and divisor."""
    known = pl.Series(scored.scorable)
    numbers = {"outcome_advantage": terms.outcome, "process_advantage": terms.process, "advantage": terms.total}
    columns = [
        pl.select(pl.when(known).then(pl.Series(values)).otherwise(None).alias(name)).to_series()
        for name, values in numbers.items()
    ]
    tokens = None
    if terms.tokens is not None:
        ragged = terms.tokens
        tokens = [(terms.total[row] + ragged.row(row)).tolist() for row in range(ragged.rows)]
    return rollouts.select(KEY).with_columns(
        *columns,
        pl.Series("token_advantages", tokens or [None] * rollouts.height, dtype=pl.List(pl.Float64)),
        pl.Series("process_active", terms.process_active, dtype=pl.Boolean),
        pl.Series("zero_reason", zero_reason(scored, terms), dtype=pl.String),
    )
