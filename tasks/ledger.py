"""`ledger.jsonl`: every row of every commit in one chain, to be read, compared and quoted by its last hash.

The ledger is derived from the commits and may be rebuilt from them, but it also guards them: its last row of an
iteration holds the commit's hash, so a changed byte in either is found at the next start.
"""

import hashlib
from typing import Any

from papo.errors import LedgerMismatch
from schemas.canonical import canonical_json
from schemas.records import Commit
from tasks.disk import Disk
from tasks.publish import parent
from tasks.stored import StoredCommit

PATH = "ledger.jsonl"


class Ledger:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._size = 0
        self._head: str | None = None
        self._expected = bytearray()
        self._settled = 0

    @property
    def head(self) -> str | None:
        """SHA-256 of the last row, which covers all rows before it; None before the first commit."""
        return self._head

    def expect(self, commit: StoredCommit) -> None:
        """Hear of the next commit of the chain, before `open`."""
        self._settled = len(self._expected)
        rows, self._head = _rows(commit.entries, commit.iteration, commit.sha256, self._head)
        self._expected += rows

    def check(self, *, running: bool = False) -> None:
        """Raises LedgerMismatch, naming the row, for rows that say something else than the commits that were heard of,
        and for rows whose commit is gone. While the run goes on, further rows may have come since."""
        if not (running and self._disk.exists(PATH) and self._disk.read(PATH).startswith(bytes(self._expected))):
            self._differs()

    def open(self) -> bool:
        """Bring the file to what the commits say; True if something had to be mended.

        Rows that the last writer did not finish are completed. Raises as `check` does.
        """
        expected, actual = bytes(self._expected), self._differs()
        self._expected.clear()
        self._size = len(expected)
        if actual is None:
            return False
        if len(actual) > len(expected):
            self._disk.truncate(PATH, len(expected))
        if expected:
            self._write(0, expected)
        return True

    def append(self, commit: Commit) -> None:
        """Add a commit's rows. Written at their place, not "at the end": one that was taken over repeats itself."""
        offset = self._size
        entries = [entry.model_dump(mode="json") for entry in commit.entries]
        rows, self._head = _rows(entries, commit.iteration, commit.sha256, self._head)
        self._size += len(rows)
        self._write(offset, rows)

    def _differs(self) -> bytes | None:
        """What the file holds if that is not all that is expected."""
        actual = self._disk.read(PATH) if self._disk.exists(PATH) else b""
        if actual == bytes(self._expected):
            return None
        if not self._expected.startswith(actual):
            _refuse_changes(actual, bytes(self._expected), self._settled)
        return actual

    def _write(self, offset: int, rows: bytes) -> None:
        self._disk.write_at(PATH, offset, rows)
        self._disk.sync(PATH)
        self._disk.sync_folder(parent(PATH))


def _rows(entries: list[dict[str, Any]], iteration: int, sha256: str, head: str | None) -> tuple[bytes, str | None]:
    """The lines of a commit after the row that hashes to `head`, and the hash of their last."""
    lines: list[bytes] = []
    for content in [*({"entry": entry} for entry in entries), {"commit": sha256, "iteration": iteration}]:
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
