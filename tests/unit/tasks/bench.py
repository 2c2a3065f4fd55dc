"""A run of the scripted engine in a real folder, to be damaged and opened again."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flows.iteration import advance
from schemas.config import RunConfig
from schemas.records import Commit
from tasks.calling import direct
from tasks.disk import Disk, LocalDisk
from tasks.journal import read_lines
from tasks.lock import FileLease
from tasks.opening import close_run, open_run
from tasks.run import Run
from tasks.store import RunStore
from tasks.surroundings import Surroundings
from tests.simulation.engine import ScriptedEngine
from tests.simulation.world import Silent, SimClock, config_with, sources


@dataclass
class Bench:
    folder: Path
    config: RunConfig = field(default_factory=config_with)
    engines: list[ScriptedEngine] = field(default_factory=list)

    @property
    def disk(self) -> LocalDisk:
        return LocalDisk(self.folder)

    @property
    def commits(self) -> list[Commit]:
        return RunStore(self.disk).commits()

    def around(self, disk: Disk | None = None, **changes: Any) -> Surroundings:
        used = disk or self.disk

        def engine(_: Any) -> ScriptedEngine:
            self.engines.append(ScriptedEngine(used))
            return self.engines[-1]

        usual: dict[str, Any] = {
            "disk": used,
            "base": ".",
            "clock": SimClock(),
            "lease": lambda: FileLease(self.folder / "lock"),
            "engine": engine,
            "sources": sources,
            "model": lambda config: ("somewhere", {"tokenizer.json": b"{}"}),
            "reporter": Silent(),
        }
        return Surroundings(**(usual | changes))

    def run(self, *, limit: int | None = None, disk: Disk | None = None, **changes: Any) -> str | None:
        """Start the run and advance it to its end (or by `limit`)."""
        self.folder.mkdir(exist_ok=True)
        run, state = open_run(self.around(disk, **changes), "bench", self.config)
        try:
            return advance(run, state, direct(run), limit=limit)
        finally:
            close_run(run)

    def opened(self, use: Callable[[Run], Any], **changes: Any) -> Any:
        run, _ = open_run(self.around(**changes), "bench", self.config)
        try:
            return use(run)
        finally:
            close_run(run)

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in read_lines(self.disk.read("events.jsonl")) if line["event"] == kind]

    def hashes(self) -> tuple[list[str], bytes]:
        """What must be equal where nothing was lost: the commits and the ledger."""
        return [commit.sha256 for commit in self.commits], self.disk.read("ledger.jsonl")

    def copy(self, folder: Path) -> "Bench":
        shutil.copytree(self.folder, folder)
        return Bench(folder, self.config)

    def paths(self, pattern: str) -> list[Path]:
        found = sorted(self.folder.glob(pattern))
        assert found, f"nothing is called {pattern}"
        return found


def flip(path: Path, at: int = -1) -> None:
    """Change one bit of one byte, by default in the middle of the file."""
    data = bytearray(path.read_bytes())
    at = at if at >= 0 else len(data) // 2
    data[at] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
