"""The chain of commits as a run has it at hand: whole on the disk, in memory only what the next iteration asks for.

A run of ten thousand iterations is as fast and as small as one of twenty: of each commit a few words are kept, and one
that somebody wants to see is read again and held to its hash.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

from papo.correctness import accuracy_in
from papo.errors import LedgerMismatch
from schemas.records import Commit

_AT_HAND = 64
"""Commits that are kept whole, besides the first two."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What a commit says of the held-out prompts."""

    index: int
    name: str
    """Whose word the accuracy is: see `papo.correctness`."""
    accuracy: float


class History(Sequence[Commit]):
    """All commits of a run, genesis first. Grows by `append`."""

    def __init__(self, read: Callable[[int], tuple[str, Commit]]) -> None:
        """`read`: gets a commit and its hash by its place, from wherever it is kept."""
        self._read = read
        self._hashes: list[str] = []
        self._policies: list[str] = []
        self._whole: dict[int, Commit] = {}
        self.evaluated: list[Evaluated] = []
        """In order; commits without an accuracy are left out."""
        self.config_sha256: str | None = None
        """What the run file says that the present config hashes to; None: as the config itself has it."""
        self.first_length: float | None = None
        """The mean length of completions in the first iteration that has one."""

    def __len__(self) -> int:
        return len(self._hashes)

    @overload
    def __getitem__(self, at: int) -> Commit: ...
    @overload
    def __getitem__(self, at: slice) -> list[Commit]: ...
    def __getitem__(self, at: int | slice) -> Commit | list[Commit]:
        if isinstance(at, slice):
            return [self[index] for index in range(*at.indices(len(self)))]
        index = range(len(self))[at]
        found = self._whole.get(index)
        if found is None:
            sha256, found = self._read(index)
            if sha256 != self._hashes[index]:
                raise LedgerMismatch(
                    f"The commit of iteration {index - 1} is not what it was when the run was opened: it was changed "
                    "meanwhile. Restore the run directory from a copy, or start a new run."
                )
            self._keep(index, found)
        return found

    def append(self, commit: Commit) -> None:
        """Add the commit of the iteration that has just ended."""
        self.note(commit.sha256, commit.state.policy.fingerprint.policy_sha256, commit.summary)
        self._keep(len(self) - 1, commit)

    def note(self, sha256: str, policy_sha256: str, summary: dict[str, Any]) -> None:
        """Add a commit by the few words that are kept of it."""
        name, accuracy = accuracy_in(summary, prefix="evaluation/")
        if accuracy is not None:
            self.evaluated.append(Evaluated(index=len(self), name=name, accuracy=float(accuracy)))
        if self.first_length is None and summary.get("length_mean"):
            self.first_length = float(summary["length_mean"])
        self._hashes.append(sha256)
        self._policies.append(policy_sha256)

    def sha256(self, index: int) -> str:
        """A commit's hash, as it was written: not what a later papo would make of its fields."""
        return self._hashes[index]

    def find(self, sha256: str) -> Commit | None:
        """The commit of this hash."""
        return self[self._hashes.index(sha256)] if sha256 in self._hashes else None

    def of_policy(self, policy_sha256: str) -> list[int]:
        """Places of the commits whose state has this policy, in order."""
        return [index for index, policy in enumerate(self._policies) if policy == policy_sha256]

    def _keep(self, index: int, commit: Commit) -> None:
        self._whole[index] = commit
        if len(self._whole) > _AT_HAND + 2:
            del self._whole[next(kept for kept in self._whole if kept > 1)]


def history_of(commits: Sequence[Commit]) -> History:
    """The same of commits that are all in memory."""
    found = History(lambda index: (commits[index].sha256, commits[index]))
    for commit in commits:
        found.append(commit)
    return found
