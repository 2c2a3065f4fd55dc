"""The rows of a run's data for looking at: right or faulty, each with its place, none of them refused."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from papo.errors import DataError
from papo.rewards.answers import normalize_answer
from schemas.data import DataSource, MadeSource, MixtureSource, PlainSource
from tasks.madeproblems import made_problems
from tasks.rowfaults import RowFaults
from tasks.sources import rows_of, valid_row

WORDS = 8
"""Words in a row that two prompts share before they are called overlapping."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRow:
    """One row; a faulty one has no text."""

    split: str
    place: str
    """Where it stands: its source's name in a mixture, and line or row."""
    prompt_id: str
    prompt: str = ""
    is_messages: bool = False
    reference_answer: str = ""
    faults: tuple[str, ...] = ()
    folded: str = field(default="", repr=False)
    """The prompt after unicode, case and space folding: equal prompts have equal texts."""

    @property
    def gold(self) -> str:
        """The reference as plain comparison has it."""
        return normalize_answer(self.reference_answer)


def folded(text: str) -> str:
    """NFKC, case folded, white space as single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def grams(text: str) -> set[str]:
    """Every run of `WORDS` words in a folded text; none of a shorter one."""
    words = _WORD.findall(text)
    return {" ".join(words[at : at + WORDS]) for at in range(len(words) - WORDS + 1)}


def data_rows(source: DataSource, base: Path, *, split: str) -> list[DataRow]:
    """All rows of a split in their order. Raises DataError where a source as a whole cannot be read, or has no rows."""
    if not isinstance(source, MixtureSource):
        found = list(_plain(source, base, split, ""))
    else:
        found = [row for member in source.sources for row in _plain(member.source, base, split, member.name)]
    if not found:
        raise DataError(f"data.{split} has no rows: name another source, or take fewer of them away (skip).")
    return found


def _plain(source: PlainSource, base: Path, split: str, name: str) -> Iterator[DataRow]:
    before, spot = (f"{name}/", f"{name} ") if name else ("", "")
    if isinstance(source, MadeSource):
        for number, problem in enumerate(made_problems(source, f"data.{split}")):
            yield _row(split, f"{spot}problem {number}", (f"{before}{number}", *problem))
        return
    for row in rows_of(source, base):
        faults = RowFaults("")
        valid = valid_row(row, source, faults)
        place = f"{spot}{row.place}"
        if valid is None:
            yield DataRow(split=split, place=place, prompt_id=f"{before}{row.number}", faults=tuple(faults.kinds))
        else:
            yield _row(split, place, (f"{before}{valid[0]}", *valid[1:]))


def _row(split: str, place: str, valid: tuple[Any, ...]) -> DataRow:
    prompt_id, prompt, is_messages, reference_answer = valid
    return DataRow(
        split=split,
        place=place,
        prompt_id=prompt_id,
        prompt=prompt,
        is_messages=is_messages,
        reference_answer=reference_answer,
        folded=folded(prompt),
    )
