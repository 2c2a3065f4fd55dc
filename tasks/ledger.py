"""`ledger.jsonl`: every row of every commit in one chain, to be read, compared and quoted by its last hash.

The ledger is derived from the commits and may be rebuilt from them, but it also guards them: its last row of an
iteration holds the commit's hash, so a changed byte in either is found at the next start.
"""

import hashlib
from collections.abc import Sequence

from papo.errors import LedgerMismatch
from schemas.canonical import canonical_json
from schemas.records import Commit
from tasks.disk import Disk
from tasks.publish import parent

PATH = "ledger.jsonl"


def head_of(commits: Sequence[Commit]) -> str | None:
    """The last row's hash of the ledger that these commits make."""
    head: str | None = None
    for commit in commits:
        _, head = _rows(commit, head)
    return head


class Ledger:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._size = 0
        self._head: str | None = None

    @property
    def head(self) -> str | None:
        """SHA-256 of the last row, which covers all rows before it; None before the first commit."""
        return self._head

    def open(self, commits: Sequence[Commit]) -> bool:
        """Bring the file to what the commits say; True if something had to be mended.

        Rows that the last writer did not finish are completed. Raises LedgerMismatch, naming the row, for rows that
        say something else, and for rows whose commit is gone.
        """
        self._head = None
        expected, settled = b"", 0
        for commit in commits:
            settled = len(expected)
            rows, self._head = _rows(commit, self._head)
            expected += rows
        actual = self._disk.read(PATH) if self._disk.exists(PATH) else b""
        self._size = len(expected)
        if actual == expected:
            return False
        if not expected.startswith(actual):
            _refuse_changes(actual, expected, settled)
        if len(actual) > len(expected):
            self._disk.truncate(PATH, len(expected))
        if expected:
            self._write(0, expected)
        return True

    def append(self, commit: Commit) -> None:
        """Add a commit's rows. Written at their place, not "at the end": one that was taken over repeats itself."""
        offset = self._size
        rows, self._head = _rows(commit, self._head)
        self._size += len(rows)
        self._write(offset, rows)

    def _write(self, offset: int, rows: bytes) -> None:
        self._disk.write_at(PATH, offset, rows)
        self._disk.sync(PATH)
        self._disk.sync_folder(parent(PATH))


def _rows(commit: Commit, head: str | None) -> tuple[bytes, str | None]:
    """The lines of a commit after the row that hashes to `head`, and the hash of their last."""
    lines: list[bytes] = []
    contents = [{"entry": entry.model_dump(mode="json")} for entry in commit.entries]
    for content in [*contents, {"commit": commit.sha256, "iteration": commit.iteration}]:
        line = canonical_json({**content, "previous": head})
        head = hashlib.sha256(line).hexdigest()
        lines.append(line + b"\n")
    return b"".join(lines), head


def _refuse_changes(actual: bytes, expected: bytes, settled: int) -> None:
    """Raise unless all that differs is the unfinished write of the last commit's rows (`settled`: where they begin)."""
    rows, wanted = actual.splitlines(keepends=True), expected.splitlines(keepends=True)
    position = 0
    torn = not actual.endswith(b"\n") or b"\0" in actual[settled:]
    for number, row in enumerate(rows):
        if number >= len(wanted) and not torn:
            raise LedgerMismatch(
                f"{PATH} row {number + 1} belongs to no commit: its iteration's commit.json is gone. "
                "Restore the run directory from a copy, or start a new run."
            )
        unfinished = torn and position >= settled
        if number < len(wanted) and row != wanted[number] and not unfinished:
            raise LedgerMismatch(
                f"{PATH} row {number + 1} is not what the commits say: one of them was changed after it was written "
                f"(row: {row[:120]!r}). Restore the run directory from a copy, or start a new run."
            )
        position += len(row)
