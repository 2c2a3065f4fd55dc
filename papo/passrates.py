"""How often each row of the data was solved: by the first policy over several tries, or by all policies of a run.

Frames here have one row a prompt_id and the columns of `COLUMNS`, in the order of first sight.
"""

import polars as pl

from papo.errors import DataError
from papo.runs import RunView

COLUMNS = ("prompt_id", "pass_rate", "tries", "right", "undecided", "visits", "first", "last", "judged_by")
_KEY = ["group_id", "sample_index"]


def of_first_policy(run: RunView) -> pl.DataFrame:
    """Of the evaluation before the first iteration; visits is 1, first and last are -1."""
    rows = run.frame(-1, "evaluate").with_columns(iteration=pl.lit(-1, dtype=pl.Int64))
    return _rates(rows)


def of_training(run: RunView) -> pl.DataFrame:
    """Of every rollout that a run has drawn for training, those of groups that were filtered out included.

    Raises DataError if no iteration is committed yet.
    """
    if not run.iterations:
        raise DataError(f"{run.folder} has no committed iteration yet, so no row was visited: let it train first.")
    return _rates(pl.concat([_drawn(run, number) for number in run.iterations]))


def unsolved(rates: pl.DataFrame, *, min_visits: int) -> pl.DataFrame:
    """The rows that were never solved in so many visits or more: too hard, or with a wrong reference (BUG-133)."""
    return rates.filter((pl.col("visits") >= min_visits) & (pl.col("pass_rate") == 0.0))


def solved(rates: pl.DataFrame, *, min_visits: int) -> pl.DataFrame:
    """The rows that were always solved in so many visits or more: nothing is learnt from them."""
    return rates.filter((pl.col("visits") >= min_visits) & (pl.col("pass_rate") == 1.0))


def _drawn(run: RunView, iteration: int) -> pl.DataFrame:
    prompts = run.frame(iteration, "sample").select("group_id", "prompt_id")
    outcomes = run.frame(iteration, "verify").select(*_KEY, "correct", "judged_by")
    joined = outcomes.join(prompts, on="group_id", how="left", maintain_order="left")
    return joined.with_columns(iteration=pl.lit(iteration, dtype=pl.Int64))


def _rates(rows: pl.DataFrame) -> pl.DataFrame:
    correct = pl.col("correct")
    visit = pl.struct("iteration", "group_id")
    return (
        rows.group_by("prompt_id", maintain_order=True)
        .agg(
            correct.mean().alias("pass_rate"),
            correct.count().cast(pl.Int64).alias("tries"),
            correct.sum().cast(pl.Int64).alias("right"),
            correct.null_count().cast(pl.Int64).alias("undecided"),
            visit.n_unique().cast(pl.Int64).alias("visits"),
            pl.col("iteration").min().alias("first"),
            pl.col("iteration").max().alias("last"),
            pl.col("judged_by").unique().sort().str.join("+").alias("judged_by"),
        )
        .select(COLUMNS)
    )
