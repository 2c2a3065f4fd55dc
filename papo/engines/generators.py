"""Who samples rollouts: the learner itself, or servers of their own that are given its weights."""

from dataclasses import dataclass
from typing import Protocol

from papo.engines.protocol import Engine, Progress
from papo.engines.requests import Generate


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """Weights that a generator has taken over, and how that was checked."""

    policy_sha256: str
    """Of the learner's tensors."""
    export_sha256: str
    """Of the files that carried them."""
    seconds: float
    """Export, load and checks; without the start of servers."""
    start_seconds: float
    """Start of servers that were not there yet; 0 if none was started."""
    probe_gap_mean: float
    """|log-prob of the server − of the learner|, mean over the probe's tokens, of the worst server."""
    probe_gap_max: float
    """Its largest value."""
    servers: tuple[str, ...]


class Generator(Protocol):
    """Samples shards from the policy that an engine holds. `sync` comes before each `generate`.

    May raise `papo.errors.GeneratorDied`; `close` then leaves it such that `sync` starts anew.
    """

    @property
    def environment(self) -> dict[str, str]:
        """Versions and settings: recorded, not identity. Empty while nothing of its own runs."""
        ...

    def sync(self, engine: Engine, request: Generate) -> Synced | None:
        """Bring the generator to the weights that `engine` holds; None where it has them. Compared are hashes, not
        counters, so a resumed run syncs before its first rollout (BUG-048).

        Raises EngineError where the servers then do not hold these weights.
        """
        ...

    def generate(self, engine: Engine, request: Generate, progress: Progress | None = None) -> tuple[str, ...]:
        """Sample the shard and write its rollouts to `request.output`. Returns what went wrong on the way and was lived
        with (a server that was dropped, a row that was lost), a sentence each."""
        ...

    def rest(self) -> None:
        """Give memory that is shared with the learner back until the next `sync`."""
        ...

    def close(self) -> None: ...


class Embedded:
    """The learner generates on its own weights: nothing to start, to sync or to check."""

    @property
    def environment(self) -> dict[str, str]:
        return {}

    def sync(self, engine: Engine, request: Generate) -> Synced | None:
        return None

    def generate(self, engine: Engine, request: Generate, progress: Progress | None = None) -> tuple[str, ...]:
        engine.generate(request, progress)
        return ()

    def rest(self) -> None: ...

    def close(self) -> None: ...
