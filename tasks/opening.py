"""Open a run for advancing: take the lock, read what is there, hold it to its hashes, mend what a crash left undone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from papo.engines.generators import Embedded, Generator
from papo.engines.protocol import Engine
from papo.engines.settings import EngineSettings
from papo.judges import Judge
from schemas.config import RunConfig
from schemas.records import Commit, IterationState
from tasks.checkpoints import FOLDER as CHECKPOINTS
from tasks.checkpoints import newest_manifest
from tasks.clock import Clock
from tasks.disk import Disk
from tasks.genesis import keep_model
from tasks.journal import Journal
from tasks.ledger import Ledger
from tasks.lock import Lease
from tasks.modelfiles import files_sha256
from tasks.pace import Pace
from tasks.publish import ensure_folder, sweep
from tasks.run import SCRATCH, RawData, Reporter, Run
from tasks.runfile import RunFile, check_sources, create_run_file, epoch, read_run_file, with_config, write_run_file
from tasks.soundness import Lookout, check_genesis, check_model
from tasks.store import RunStore, folder_of

FOLDERS = ("iterations", CHECKPOINTS, "exports", SCRATCH, "logs")


@dataclass(frozen=True)
class Surroundings:
    """What a run takes from outside: everything that the simulation replaces."""

    disk: Disk
    base: str
    """The folder that relative paths in the config are relative to."""
    clock: Clock
    lease: Callable[[], Lease]
    engine: Callable[[EngineSettings], Engine]
    sources: Callable[[RunConfig], dict[str, RawData]]
    """The data, by split."""
    model: Callable[[RunConfig], tuple[str, dict[str, bytes]]]
    """The first policy's folder, and its config and tokenizer files."""
    reporter: Reporter
    generator: Callable[[RunConfig], Generator] = lambda config: Embedded()
    judge: Judge | None = None
    hashed: Callable[[str], str] = files_sha256
    """What a model folder's files hash to."""


def open_run(
    around: Surroundings, run_id: str, config: RunConfig | None, *, amend: bool = False
) -> tuple[Run, IterationState | None]:
    """The run and the state that it stands at (None before its genesis).

    `config` None goes on with the run's own. Raises RunLocked, ConfigError, DataError or StoreError; nothing has been
    changed then but what a crash had left unfinished.
    """
    lease = around.lease()
    try:
        return _open(around, run_id, config, lease, amend=amend)
    except BaseException:
        lease.release()
        raise


def close_run(run: Run) -> None:
    """End the engine and let the lock go."""
    run.generator.close()
    run.engine.close()
    run.lease.release()


def _open(
    around: Surroundings, run_id: str, config: RunConfig | None, lease: Lease, *, amend: bool
) -> tuple[Run, IterationState | None]:
    disk = around.disk
    store, ledger = RunStore(disk), Ledger(disk)
    lookout = Lookout(disk)
    commits = store.history(ledger.expect, lookout.see)
    run_file = read_run_file(disk)
    sources = None
    if run_file is None:
        if config is None:
            raise ValueError(f"run {run_id} does not exist, so a config is needed")
        sources = around.sources(config)
        model, files = around.model(config)
        run_file = RunFile(
            run_id=run_id,
            base=around.base,
            model=model,
            sources={split: raw.sha256 for split, raw in sources.items()},
            epochs=(epoch(config, since=0),),
            kept=keep_model(disk, files),
        )
        run_file = create_run_file(disk, run_file)
    else:
        ledger.check()
        check_model(disk, run_file)
        check_genesis(store, commits)
        head = commits[-1].iteration if commits else -1
        amended = run_file if config is None else with_config(run_file, config, head=head, amend=amend)
        # By the config that now holds: a file may have moved, as long as its rows are the same.
        sources = around.sources(amended.latest)
        hashes = {split: raw.sha256 for split, raw in sources.items()}
        check_sources(run_file, hashes, named_sources(amended.latest))
        if amended != run_file:
            write_run_file(disk, amended)
            run_file = amended
    lease.raise_above(commits)
    mended = ledger.open()
    for folder in FOLDERS:
        ensure_folder(disk, folder)
    _sweep(disk, commits)
    config_now = run_file.config_at(len(commits))
    journal = Journal(disk, around.clock, attempt=lease.token)
    run = Run(
        run_id=run_id,
        disk=disk,
        store=store,
        ledger=ledger,
        journal=journal,
        lease=lease,
        engine=around.engine(config_now.engine_settings),
        generator=around.generator(config_now),
        judge=around.judge,
        hashed=cache(around.hashed),
        clock=around.clock,
        reporter=around.reporter,
        configs=_Configs(run_file),
        sources=sources.__getitem__,
        model=run_file.model,
        base=run_file.base,
        commits=commits,
        lineage=commits[-1].lineage if commits else 0,
        pace=Pace.read(disk),
    )
    lines = journal.mend(commits)
    journal.event("opened", ledger_mended=mended and bool(commits), metrics_mended=lines, commits=len(commits))
    if lookout.told is not None:
        journal.event("missing", paths=lookout.missing[:100], count=len(lookout.missing))
        run.reporter.message(f"{lookout.told}. Nothing that goes on from here rests on them, unless it is replayed.")
    _note_other_sums(run)
    run.engine.start()
    return run, _current(run)


class _Configs:
    """The config that an iteration runs under, parsed once."""

    def __init__(self, run_file: RunFile) -> None:
        self._run_file = run_file
        self._parsed: dict[int, RunConfig] = {}

    def __call__(self, iteration: int) -> RunConfig:
        since = max(epoch_.since for epoch_ in self._run_file.epochs if epoch_.since <= max(iteration, 0))
        if since not in self._parsed:
            self._parsed[since] = self._run_file.config_at(since)
        return self._parsed[since]


def _note_other_sums(run: Run) -> None:
    """A new lineage where the next iteration adds its gradients up in another order than those before.

    Seen from the run file and the commits, so a crash before the next commit does not lose it.
    """
    if not run.commits:
        return
    before, now = run.configs(run.head.iteration).engine.sums, run.configs(run.head.iteration + 1).engine.sums
    if before == now:
        return
    run.lineage = run.head.lineage + 1
    run.journal.event("sums_changed", before=before, now=now, lineage=run.lineage)
    changed = ", ".join(f"engine.{name} {was} → {now[name]}" for name, was in before.items() if was != now[name])
    run.reporter.message(
        f"{changed}: the same steps but for their last bits, so the run goes on as lineage {run.lineage}."
    )


def _current(run: Run) -> IterationState | None:
    """Where the run stands: its last commit, or a checkpoint of a later lineage at the same commit."""
    if not run.commits:
        return None
    manifest = newest_manifest(run)
    if (
        manifest is not None
        and manifest.commit_sha256 == run.commits.sha256(-1)
        and manifest.lineage > run.head.lineage
    ):
        run.lineage = manifest.lineage
        return manifest.state
    return run.head.state


def _sweep(disk: Disk, commits: Sequence[Commit]) -> None:
    """Remove drafts where a dead writer can have left them: the top, and the iteration that it worked on."""
    at = commits[-1].iteration if commits else -1
    for folder in (".", *FOLDERS, folder_of(at), folder_of(at + 1)):
        sweep(disk, folder)
    for name in disk.names(SCRATCH):
        disk.remove(f"{SCRATCH}/{name}")


def named_sources(config: RunConfig) -> dict[str, str]:
    """How the user named each data source."""
    return {
        split: getattr(source, "path", source.kind)
        for split, source in (("train", config.data.train), ("evaluation", config.data.evaluation))
        if source is not None
    }
