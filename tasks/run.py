"""A run that is open for advancing: its store, its engine and its config, handed to every stage."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from papo.engines.generators import Embedded, Generator
from papo.engines.protocol import Engine
from papo.judges import Judge
from papo.later import Later
from schemas.canonical import sha256_of
from schemas.config import RunConfig
from schemas.records import GENESIS, Commit, FrameRef, Updated
from tasks.clock import Clock
from tasks.disk import Disk
from tasks.history import History, history_of
from tasks.journal import Journal
from tasks.ledger import Ledger
from tasks.lock import Lease
from tasks.modelfiles import files_sha256
from tasks.pace import Pace
from tasks.store import RunStore

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

T = TypeVar("T")
SCRATCH = "scratch"
MODEL = "model"
"""The policy's config and tokenizer, copied into the run so that its checkpoints can be loaded without the source."""

BESIDE = "beside"
"""The same of models trained beside it that start from folders of their own."""


class Reporter(Protocol):
    """Whoever shows the run's progress: a terminal, a log, the Prefect UI."""

    def message(self, text: str) -> None: ...
    def stage(self, iteration: int, stage: str) -> None: ...
    def progress(self, done: int, total: int) -> None: ...
    def iteration(self, iteration: int, values: dict[str, float | int | bool | None]) -> None: ...


@dataclass(frozen=True)
class RawData:
    """Rows as read from the source, before the tokenizer: one frame a split, and what the source hashes to."""

    frame: "pl.DataFrame"
    sha256: str


@dataclass
class Run:
    run_id: str
    disk: Disk
    store: RunStore
    ledger: Ledger
    journal: Journal
    lease: Lease
    engine: Engine
    clock: Clock
    reporter: Reporter
    configs: Callable[[int], RunConfig]
    """The config that an iteration runs under: amendments hold from their iteration on."""
    config_hashes: Callable[[int], str]
    """Their hashes, as the run file has them."""
    sources: Callable[[str], RawData]
    """Reads the data source of a split ("train" or "evaluation")."""
    model: str
    """The folder that the first policy is loaded from."""
    base: str = "."
    """The folder that relative paths in the config are relative to."""
    generator: Generator = field(default_factory=Embedded)
    """Who samples from the policy that the engine holds."""
    judge: Judge | None = None
    """Who gives second opinions, where the config wants them."""
    hashed: Callable[[str], str] = files_sha256
    """What the files of a reward model's folder hash to."""
    commits: History = field(default_factory=lambda: history_of([]))
    lineage: int = 0
    pending: list[Updated] = field(default_factory=list[Updated])
    """What changed the engine's models in the iteration at hand, in order, done but not committed."""
    reference_loaded: str | None = None
    """Folder of the reference that the engine holds."""
    iteration_seconds: float = 0.0
    """How long the last whole iteration took, and the last checkpoint: they decide how often to save."""
    save_seconds: float = 0.0
    stage: str = ""
    """The stage at hand."""
    stalls: int = 0
    """How often the engine has stalled in it."""
    pace: Pace = field(default_factory=Pace)
    """How long each stage takes in this run."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """By stage, in the iteration at hand."""
    last_seconds: dict[str, float] = field(default_factory=dict[str, float])
    """By stage, in the last whole iteration."""

    @property
    def horizon(self) -> int:
        """How many iterations the run is to have."""
        return self.configs(len(self.commits)).iterations

    @property
    def head(self) -> Commit:
        return self.commits[-1]

    def artifact(self, stage: str, shard: int, iteration: int = GENESIS) -> FrameRef:
        """A committed artifact, by default of the genesis."""
        commit = self.commits[iteration + 1]
        return next(entry.frame_ref for entry in commit.entries if (entry.stage, entry.shard) == (stage, shard))

    @property
    def held_out(self) -> list[FrameRef]:
        """The evaluation prompts; empty where the run has none."""
        return [entry.frame_ref for entry in self.commits[0].entries if entry.stage == "sample"]

    def made(
        self,
        *,
        stage: str,
        version: int,
        iteration: int,
        shard: int,
        key_parts: dict[str, Any],
        make: "Callable[[], pl.DataFrame]",
    ) -> FrameRef:
        """The artifact under this key: adopted if it was published before, else made, validated and published."""
        key = key_of(stage=stage, version=version, iteration=iteration, shard=shard, **key_parts)
        address: dict[str, Any] = {"stage": stage, "iteration": iteration, "shard": shard}
        found = self.store.published(**address, key=key)
        self.journal.event("adopted" if found else "making", **address, key=key, parts=key_parts)
        return found or self.store.publish(make(), **address, version=version, key=key)

    def staged(self, name: str, write: Callable[[str], None]) -> "pl.DataFrame":
        """What an engine wrote to a scratch file, which is gone afterwards."""
        path = f"{SCRATCH}/{name}.parquet"
        local = self.disk.local(path)
        write(local)
        frame = pl.read_parquet(io.BytesIO(self.disk.read(path)))
        self.disk.remove(path)
        return frame

    def local(self, ref: FrameRef) -> str:
        """A path that the engine can read, after holding the file to its hash."""
        self.store.verify(ref)
        return self.disk.local(ref.path)

    def locals(self, refs: Sequence[FrameRef]) -> tuple[str, ...]:
        return tuple(self.local(ref) for ref in refs)

    def progress(self, done: int, total: int) -> None:
        """Something moved: shown, and seen by whoever asks how long ago that was."""
        self.lease.beat()
        self.reporter.progress(done, total)


def key_of(**parts: Any) -> str:
    """SHA-256 of everything that an output is a function of."""
    return sha256_of(parts)


def shards_of(count: int, size: int) -> list[range]:
    """Cut `count` rows, in order, into shards of `size`."""
    return [range(first, min(first + size, count)) for first in range(0, count, size)]
