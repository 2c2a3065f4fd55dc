"""How right the policy is on each source of a mixture; nothing where there is one source."""

import polars as pl


def accuracy_by_source(rows: pl.DataFrame, *, prefix: str = "") -> dict[str, float | None]:
    """`{prefix}accuracy/NAME` for each source, by name.

    `rows`: source and correct, null where a row is unscorable and counts for nothing; None where no row counts.
    """
    means = rows.group_by("source").agg(pl.col("correct").mean()).sort("source")
    return {} if means.height < 2 else {f"{prefix}accuracy/{source}": mean for source, mean in means.iter_rows()}
