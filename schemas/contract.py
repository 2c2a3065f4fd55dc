"""What every frame is held to without being told: strict columns, and rules that follow from each column's type.

A float is finite and a list has no holes, whatever the column is called. What a column allows beyond that it says where
it is declared: `nullable` (the cell may be null) or `metadata=HOLES` (entries of the list may be). A type for which
there is no rule is refused when the frame is first used, so that no column can be added without one.
"""

from functools import cache
from typing import Any, cast

import pandera.polars as pa
import polars as pl

from papo.errors import DataError

HOLES = {"holes": True}
"""Metadata of a list column whose entries may be null."""
_SHOWN = 5
_FLOATS = (pl.Float32(), pl.Float64())
_WHOLE = (pl.Int32(), pl.Int64(), pl.Boolean(), pl.String())


class Frame(pa.DataFrameModel):
    """A frame as declared, in this order and never coerced, with the rules of its columns' types."""

    class Config(pa.DataFrameModel.Config):
        strict = True
        coerce = False
        ordered = True

    @classmethod
    def build_schema_(cls, **kwargs: Any) -> pa.DataFrameSchema:
        """pandera's hook: the schema with a check more for each column whose type asks for one."""
        schema = super().build_schema_(**kwargs)
        for name, column in schema.columns.items():
            rule = _rule(name, column)
            column.checks = [*cast("list[pa.Check]", column.checks), *([] if rule is None else [rule])]
        return schema


def _rule(name: str, column: Any) -> pa.Check | None:
    """The check that a column's type asks for; that a cell is there is pandera's own, `nullable`."""
    kind, has_holes = column.dtype.type, column.metadata == HOLES
    or_null = " or null" if has_holes or column.nullable else ""
    if isinstance(kind, pl.List) and kind.inner in (*_FLOATS, *_WHOLE):
        entry = pl.element()
        fits, word = (entry.is_finite(), "finite") if kind.inner in _FLOATS else (entry.is_not_null(), "there")
        good = entry.is_null() | fits if has_holes else entry.is_not_null() & fits
        error = f"entries must be {word}{or_null if has_holes else ', none null'}"
        return _check_of(pl.col(name).list.eval(good).list.all(), error)
    if has_holes:
        raise TypeError(f"{name} is no list of a known type ({kind}), so it has no entries that may be null.")
    if kind in _FLOATS:
        return _check_of(pl.col(name).is_finite(), f"must be finite{or_null}")
    if kind in _WHOLE:
        return None
    raise TypeError(f"There is no rule for {name}: {kind}. Say in schemas/contract.py what a good value of it is.")


def _check_of(good: pl.Expr, error: str) -> pa.Check:
    def holds(data: pa.PolarsData) -> pl.LazyFrame:
        # A null cell is no concern of this check.
        return data.lazyframe.select(good.fill_null(True))

    return pa.Check(holds, error=error)


@cache
def columns_of(schema: type[Frame]) -> dict[str, Any]:
    """The columns of a frame with their polars types, in order: what an empty frame of it is made with."""
    return {name: column.dtype.type for name, column in schema.to_schema().columns.items()}


def check(frame: pl.DataFrame, schema: type[Frame], *, what: str) -> pl.DataFrame:
    """`frame` itself, if it fulfils `schema`.

    Raises DataError with all faults at once, each with the number of failing rows and the first of them; never the
    rows' contents, which may be long and hostile.
    """
    if frame.height == 0:
        raise DataError(f"{what} has no rows, but {schema.__name__} must have at least one.")
    try:
        return cast("pl.DataFrame", schema.validate(frame, lazy=True))
    except pa.errors.SchemaErrors as error:
        unknown = [name for name in frame.columns if name not in columns_of(schema)]
        faults = _faults(error.failure_cases, unknown, rows=frame.height)
        raise DataError(f"{what} is not a valid {schema.__name__} frame:\n{faults}") from None


def _faults(cases: Any, unknown: list[str], *, rows: int) -> str:
    # pandera names only the first unknown column.
    lines = [f"  {name}: unknown column" for name in unknown]
    grouped = cases.group_by("column", "check", maintain_order=True).agg(
        pl.col("index").drop_nulls().n_unique().alias("count"),
        pl.col("index").drop_nulls().unique(maintain_order=True).head(_SHOWN),
        pl.col("failure_case").unique(maintain_order=True).head(20),
    )
    ill_typed = any(check.startswith(("dtype(", "column_in_dataframe")) for check in grouped["check"])
    for row in grouped.iter_rows(named=True):
        match row["check"]:
            case "column_in_schema":
                continue
            case "column_in_dataframe":
                lines += [f"  {name}: missing column" for name in row["failure_case"]]
            case "column_ordered":
                lines += [f"  {name}: not in its place among the columns" for name in row["failure_case"]]
            case check if check.startswith("dtype("):
                lines.append(f"  {row['column']}: must be of type {check[7:-2]}")
            case check if row["index"]:
                more = ", …" if row["count"] > _SHOWN else ""
                shown = f"{row['count']} of {rows} rows: {', '.join(map(str, row['index']))}{more}"
                lines.append(f"  {row['column']}: {check} ({shown})")
            case check if not ill_typed:
                lines.append(f"  {row['column']}: {check}")
            case _:
                # A check that could not be made, for want of the type that it is about: that is said above.
                continue
    return "\n".join(lines)


__all__ = ["HOLES", "Frame", "check", "columns_of"]
