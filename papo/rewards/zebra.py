"""The outcome reward for zebra grids: a table as JSON, compared cell by cell.

A reference is `{"header": ["Position", "Nationality"], "rows": [["1", "british"], ["2", "polish"]]}`; the first column
names the rows.
"""

import json
from dataclasses import asdict
from typing import Any, Literal, cast

from papo.rewards.answers import committed
from papo.rewards.structured import (
    LONGEST_COMPLETION,
    Truncated,
    UnreadableError,
    cut_off,
    decided,
    find_answer,
    last_object,
    missing,
    plain,
    strict_json,
    unscorable,
)
from papo.rewards.verdict import Verdict
from papo.values import value

Place = Literal["answer_tag", "boxed", "object"]
LONGEST_GRID = 100_000
"""Characters of JSON."""
_Cells = dict[tuple[str, str], str]


@value
class ZebraGrid:
    r"""1 if every cell of the grid is the reference's, or the share of cells that are; the same for evaluation.

    Case and blanks do not count, nor does the order of rows and columns. A key, column or row that stands twice, one
    that the puzzle does not have and a row of another length make the whole answer wrong: a grid is one answer.
    """

    kind: Literal["zebra_grid"] = "zebra_grid"
    extract: tuple[Place, ...] = ("answer_tag", "boxed", "object")
    r"""Where the grid stands, in order of preference: the last `<answer>…</answer>`, the last `\boxed{…}`, the last
    `{…}` of the text. In a tag or box it may stand in a code fence."""
    score: Literal["exact", "cells"] = "exact"
    """exact: 1 or 0. cells: the share of right cells, the first column not counted; `correct` still means all."""
    truncated: Truncated = "zero"
    """Completions cut off at the token limit earn 0, or are scored like any other."""

    def __post_init__(self) -> None:
        if not self.extract:
            raise ValueError("extract is empty: name at least one of answer_tag, boxed, object.")

    @property
    def version(self) -> str:
        """Declared version of the rule with all settings: part of the record and of the stage's key."""
        return f"zebra_grid/2 {json.dumps(asdict(self), sort_keys=True)}"

    def __call__(self, completion: str, *, reference_answer: str, finish_reason: str) -> Verdict:
        """Judge one completion. Raises on no text whatever."""
        try:
            gold = _cells(reference_answer)
        except UnreadableError as error:
            return unscorable(f"the reference {reference_answer[:80]!r} is no grid: {error}")
        found = find_answer(committed(completion[-LONGEST_COMPLETION:]), self.extract, closing=last_object)
        if finish_reason == "length" and self.truncated == "zero":
            return cut_off(found)
        if found is None:
            return missing(self.extract)
        try:
            cells = _cells(found)
        except UnreadableError as error:
            return decided(False, extracted=found, reason=str(error))
        return self._compared(cells, gold, found)

    def check_reference(self, reference_answer: str) -> str | None:
        """Why nothing can be verified against this reference, or None."""
        try:
            _cells(reference_answer)
        except UnreadableError as error:
            return str(error)
        return None

    def _compared(self, cells: _Cells, gold: _Cells, found: str) -> Verdict:
        if cells.keys() - gold.keys():
            return decided(False, extracted=found, reason="it has a row or column that the puzzle does not have")
        right = sum(cells.get(place) == wanted for place, wanted in gold.items())
        correct = right == len(gold)
        accuracy = right / len(gold) if self.score == "cells" else float(correct)
        return decided(correct, extracted=found, accuracy=accuracy, reason=f"{right} of {len(gold)} cells are right")


def _cells(text: str) -> _Cells:
    """(row, column) to content, all plain; the first column's own cells are the rows' names. Raises UnreadableError."""
    if len(text) > LONGEST_GRID:
        raise UnreadableError(f"it is longer than {LONGEST_GRID} characters")
    held = strict_json(text)
    if not isinstance(held, dict):
        raise UnreadableError("it is no JSON object of header and rows")
    fields = {plain(name): part for name, part in cast("dict[str, Any]", held).items()}
    if len(fields) < len(cast("dict[str, Any]", held)):
        raise UnreadableError("a key stands twice in it")
    header = [plain(name).replace(" ", "") for name in _texts(fields.get("header"), "header")]
    rows = fields.get("rows")
    if not isinstance(rows, list) or not rows or len(header) < 2 or len(set(header)) < len(header):
        raise UnreadableError("it has no header of two or more different columns with rows")
    found = _Cells()
    names = set[str]()
    for row in cast("list[Any]", rows):
        name, *cells = (plain(cell) for cell in _texts(row, "a row"))
        if len(cells) != len(header) - 1 or name in names:
            raise UnreadableError("it has a row of another length than the header, or two rows of one name")
        names.add(name)
        found |= {(name, column): cell for column, cell in zip(header[1:], cells, strict=True)}
    return found


def _texts(value: Any, what: str) -> list[str]:
    parts = cast("list[Any]", value) if isinstance(value, list) else []
    if not parts or not all(isinstance(part, str) for part in parts):
        raise UnreadableError(f"{what} is no list of texts or numbers")
    return cast("list[str]", parts)
