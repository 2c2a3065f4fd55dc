"""The run directory as a store: frames published once under their key, updates recorded, commits chained.

The store is the truth. A stage's output is published in two steps: the artifact under a name that holds its hash, then
a sidecar under a name that holds its key, create-only. Whoever comes later adopts what the sidecar names.
"""

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from papo.errors import Damaged, Fenced, LedgerMismatch
from papo.later import Later
from schemas.canonical import canonical_json
from schemas.records import GENESIS, Commit, Fingerprint, FrameRef, Updated
from tasks.disk import Disk
from tasks.history import History
from tasks.publish import create_once, ensure_folder, replace
from tasks.stored import StoredCommit, parsed

if TYPE_CHECKING:
    import polars as pl

    from schemas import frames
else:
    # Who reads commits alone (a refusal, the status of a run) does not wait seconds for what reads frames.
    pl, frames = Later("polars"), Later("schemas.frames")

ARTIFACTS = {
    "prepare": "data", "sample": "prompts", "generate": "rollouts", "verify": "outcomes", "score": "scores",
    "logprobs": "logprobs", "values": "values", "implicit": "implicit", "advantage": "advantages",
    "evaluate": "evaluations",
}  # fmt: skip
_VALIDATED: dict[tuple[str, str], None] = {}
"""(frame, SHA-256) pairs that have lately passed their contract in this process: equal bytes need no second look."""
_REMEMBERED = 4096


def folder_of(iteration: int) -> str:
    """Where an iteration's artifacts are."""
    return "iterations/genesis" if iteration == GENESIS else f"iterations/{iteration:05d}"


def encode(frame: "pl.DataFrame") -> bytes:
    """Parquet bytes, equal for equal frames."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


class RunStore:
    def __init__(self, disk: Disk) -> None:
        self.disk = disk

    def publish(
        self, frame: "pl.DataFrame", *, stage: str, version: int, iteration: int, shard: int, key: str
    ) -> FrameRef:
        """Validate `frame` and make it durable under `key`; if another writer was first, its artifact is returned."""
        schema = frames.SCHEMAS[stage]
        data = encode(frame)
        sha256 = hashlib.sha256(data).hexdigest()
        _validated(frame, schema, sha256, what=f"What {stage} made in {folder_of(iteration)}, shard {shard},")
        folder = folder_of(iteration)
        ensure_folder(self.disk, folder)
        path = f"{folder}/{ARTIFACTS[stage]}-{shard:04d}-{sha256[:8]}.parquet"
        replace(self.disk, path, data)
        ref = FrameRef(
            stage=stage,
            version=version,
            iteration=iteration,
            shard=shard,
            key=key,
            path=path,
            sha256=sha256,
            rows=frame.height,
        )
        if not create_once(self.disk, _sidecar(iteration, stage, shard, key), canonical_json(ref.model_dump())):
            return self.published(stage=stage, iteration=iteration, shard=shard, key=key) or ref
        return ref

    def published(self, *, stage: str, iteration: int, shard: int, key: str) -> FrameRef | None:
        """The artifact under `key`, or None. One whose bytes are damaged is set aside, to be made again whole."""
        sidecar = _sidecar(iteration, stage, shard, key)
        if not self.disk.exists(sidecar):
            return None
        # Whoever gave it its name may have died before the name was durable; what follows will rest on it.
        self.disk.sync_folder(folder_of(iteration))
        try:
            ref = parsed(FrameRef, self.disk.read(sidecar), sidecar)
            self._bytes(ref)
        except Damaged:
            self._set_aside(sidecar, "damaged")
            return None
        return ref if ref.key == key else None

    def load(self, ref: FrameRef) -> "pl.DataFrame":
        """Read a frame and hold it to its hash and its contract.

        Raises Damaged if the file is missing or its bytes are not those that were published.
        """
        frame = pl.read_parquet(io.BytesIO(self._bytes(ref)))
        _validated(frame, frames.SCHEMAS[ref.stage], ref.sha256, what=ref.path)
        return frame

    def verify(self, ref: FrameRef) -> None:
        """Raises Damaged unless the artifact's bytes are those that were published."""
        self._bytes(ref)

    def record_update(self, updated: Updated) -> Updated:
        ensure_folder(self.disk, folder_of(updated.iteration))
        path = _sidecar(updated.iteration, updated.stage, 0, updated.key)
        if create_once(self.disk, path, canonical_json(updated.model_dump(mode="json"))):
            return updated
        return self.recorded_update(updated.stage, updated.iteration, updated.key) or updated

    def recorded_update(self, stage: str, iteration: int, key: str) -> Updated | None:
        path = _sidecar(iteration, stage, 0, key)
        if not self.disk.exists(path):
            return None
        self.disk.sync_folder(folder_of(iteration))
        return parsed(Updated, self.disk.read(path), path)

    def supersede_update(self, updated: Updated, after: Fingerprint) -> Updated:
        """Record that redoing an update which is not committed gave `after`; the old record is set aside."""
        self._set_aside(_sidecar(updated.iteration, updated.stage, 0, updated.key), "superseded")
        return self.record_update(updated.model_copy(update={"after": after}))

    def commit(self, commit: Commit) -> None:
        """End an iteration. Raises Fenced if another writer has ended it already."""
        folder = folder_of(commit.iteration)
        ensure_folder(self.disk, folder)
        if not create_once(self.disk, f"{folder}/commit.json", commit.to_bytes()):
            raise Fenced(
                f"{folder} was committed by another writer while this process worked on it. "
                "Only one process can advance a run; this one stops, the run goes on there."
            )

    def commits(self) -> list[Commit]:
        """All commits in order, genesis first, each in memory: see `chain` for what is raised."""
        return [commit.record for commit in self.chain()]

    def history(self, *watchers: Callable[[StoredCommit], None]) -> History:
        """The same as a run needs them, and durable; `watchers` are told of each on the way."""
        found, last = History(self._commit_at), None
        for commit in self.chain():
            found.note(commit.sha256, commit.policy_sha256, commit.summary)
            for watcher in watchers:
                watcher(commit)
            last = commit
        if last is not None:
            # As in `published`: the newest may not be durable yet, and the ledger is about to say that it is there.
            self.disk.sync_folder(folder_of(last.iteration))
        return found

    def chain(self) -> Iterator[StoredCommit]:
        """All commits in order, genesis first, after checking that each names the one before.

        Raises Damaged for one that cannot be read and LedgerMismatch where the chain does not hold.
        """
        previous: StoredCommit | None = None
        places = len(self.disk.names("iterations"))
        for iteration in [GENESIS, *range(places)]:
            path = f"{folder_of(iteration)}/commit.json"
            try:
                commit = StoredCommit.read(self.disk.read(path), path)
            except FileNotFoundError:
                self._refuse_gap(iteration, places)
                break
            before = previous and previous.sha256
            if commit.iteration != iteration or commit.previous != before:
                raise LedgerMismatch(
                    f"{path} does not follow the commit before it: it names {commit.previous}, which hashes to "
                    f"{before}. One of the two files was changed after it was written. Restore the run directory "
                    "from a copy, or start a new run."
                )
            yield commit
            previous = commit
        if previous is not None:
            # The chain covers all but its last: that one is held to its record here, and to the ledger.
            _ = previous.record

    def _refuse_gap(self, missing: int, places: int) -> None:
        """Raise where commits follow that would never be reached: the one before them is gone."""
        for iteration in range(missing + 1, places):
            if self.disk.exists(f"{folder_of(iteration)}/commit.json"):
                raise LedgerMismatch(
                    f"{folder_of(missing)}/commit.json is gone, but {folder_of(iteration)} is committed. Restore the "
                    "run directory from a copy, or start a new run."
                )

    def _commit_at(self, index: int) -> tuple[str, Commit]:
        path = f"{folder_of(index - 1)}/commit.json"
        try:
            stored = StoredCommit.read(self.disk.read(path), path)
        except FileNotFoundError:
            raise Damaged(f"{path} is missing. {_WAY_OUT}") from None
        return stored.sha256, stored.record

    def _bytes(self, ref: FrameRef) -> bytes:
        try:
            data = self.disk.read(ref.path)
        except FileNotFoundError:
            raise Damaged(f"{ref.path} is missing. {_WAY_OUT}") from None
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 != ref.sha256:
            raise Damaged(
                f"{ref.path} hashes to {sha256[:16]}… but was published as {ref.sha256[:16]}… "
                f"({len(data)} bytes, {ref.rows} rows then). {_WAY_OUT}"
            )
        return data

    def _set_aside(self, sidecar: str, why: str) -> None:
        # Only the sidecar publishes: without it the artifact is made again, under the same name for the same bytes.
        self.disk.rename(sidecar, os.path.join(os.path.dirname(sidecar), f"{why}-{os.path.basename(sidecar)}"))
        self.disk.sync_folder(os.path.dirname(sidecar))


_WAY_OUT = (
    "Its iteration is committed history, so it is not made again: restore the file from a copy of the run directory, "
    "or start a new run."
)


def _sidecar(iteration: int, stage: str, shard: int, key: str) -> str:
    return f"{folder_of(iteration)}/{stage}-{shard:04d}-{key[:16]}.json"


def _validated(frame: "pl.DataFrame", schema: "type[frames.Frame]", sha256: str, *, what: str) -> None:
    known = (schema.__name__, sha256)
    if known not in _VALIDATED:
        frames.check(frame, schema, what=what)
        if len(_VALIDATED) == _REMEMBERED:
            del _VALIDATED[next(iter(_VALIDATED))]
        _VALIDATED[known] = None
