"""Tiers of difficulty by the policy's own pass rate, and the set that has equally many rows of each.

A row that was never solved teaches nothing and is removed; the tiers are those of PAPO's stratified set of NuminaMath
(five, over eight tries). The rates are read from a file: `papo data rate` makes one, and so may others.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from papo.errors import DataError
from tasks.datarows import DataRow
from tasks.rowfaults import FaultyRow, RowFaults, Spelled, id_of, named
from tasks.rowfiles import named_rows

TIERS = (("hardest", 0.125), ("hard", 0.375), ("middle", 0.625), ("easy", 0.875), ("easiest", 1.0))
"""Name and upper bound, which belongs to the tier."""
COLUMNS = ("prompt_id", "pass_rate", "tries")


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRate:
    share: float
    """Of the tries, 0 to 1."""
    tries: int | None = None


def tier_of(share: float) -> str | None:
    """The tier of a pass rate; None for 0, which belongs to none."""
    return None if share <= 0 else next(name for name, bound in TIERS if share <= bound)


def read_rates(path: Path) -> dict[str, PassRate]:
    """Pass rates by prompt_id, from JSONL or Parquet of prompt_id, pass_rate and maybe tries.

    Raises DataError with every fault of the file.
    """
    faults = RowFaults(
        str(path), way_out="Repair these rows: prompt_id, and pass_rate from 0 to 1, are what each needs."
    )
    found: dict[str, PassRate] = {}
    for row in named_rows(path, COLUMNS, skip=0, take=None):
        if row.fault is not None:
            faults.add(row.fault, row.place)
            continue
        try:
            name = id_of(row.values.get("prompt_id"))
            rate = PassRate(share=_share(row.values.get("pass_rate")), tries=_tries(row.values.get("tries")))
        except FaultyRow as fault:
            faults.add(str(fault), row.place)
            continue
        if name in found:
            faults.add("prompt_id is that of an earlier row", row.place)
        found[name] = rate
    faults.raise_if_any()
    if not found:
        raise DataError(f"{path} has no pass rates: give it one JSON object a line.")
    return found


def tiers_of(rows: Iterable[DataRow], rates: Mapping[str, PassRate]) -> dict[str, list[DataRow]]:
    """The rows that have a pass rate, by tier, hardest first."""
    found: dict[str, list[DataRow]] = {name: [] for name, _ in TIERS}
    for row in rows:
        rate = rates.get(row.prompt_id)
        tier = None if rate is None else tier_of(rate.share)
        if tier is not None:
            found[tier].append(row)
    return found


def stratified(rows: Sequence[DataRow], rates: Mapping[str, PassRate], *, per_tier: int) -> list[DataRow]:
    """`per_tier` rows of every tier, in the rows' order. Which ones is decided by their ids' hashes alone.

    Raises DataError, naming the tiers, where there are not so many.
    """
    tiers = tiers_of(rows, rates)
    if short := [f"{name} has {len(found)}" for name, found in tiers.items() if len(found) < per_tier]:
        raise DataError(
            f"A stratified set of {per_tier} rows a tier cannot be drawn: {', '.join(short)}. Ask for fewer."
        )
    chosen = {row.place for found in tiers.values() for row in sorted(found, key=_by_hash)[:per_tier]}
    return [row for row in rows if row.place in chosen]


def _by_hash(row: DataRow) -> str:
    return hashlib.sha256(row.prompt_id.encode()).hexdigest()


def _share(value: object) -> float:
    found = float(value) if isinstance(value, Spelled) else math.nan
    if not 0 <= found <= 1:
        raise FaultyRow(f"pass_rate is {named(value)} that is none from 0 to 1")
    return found


def _tries(value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, Spelled) or not value.isdigit():
        raise FaultyRow("tries is no whole number")
    return int(value)
