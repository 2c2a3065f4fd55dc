"""Open a run for advancing: take the lock, read what is there, hold it to its hashes, mend what a crash left undone."""

from collections.abc import Sequence
from functools import cache

from papo.version import papo_version
from schemas.config import RunConfig
from schemas.records import Commit, IterationState
from tasks.checkpoints import FOLDER as CHECKPOINTS
from tasks.checkpoints import newest_manifest
from tasks.disk import Disk
from tasks.identity import CommittedConfigs, identify
from tasks.journal import Journal
from tasks.ledger import Ledger
from tasks.lock import Lease
from tasks.pace import Pace
from tasks.pins import CODE
from tasks.publish import ensure_folder, sweep
from tasks.run import BESIDE, SCRATCH, Run
from tasks.runfile import RunFile, read_run_file
from tasks.soundness import Lookout, check_genesis, check_model
from tasks.store import RunStore, folder_of
from tasks.surroundings import Surroundings

FOLDERS = ("iterations", CHECKPOINTS, "exports", SCRATCH, "logs")


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
    lookout, made_under = Lookout(disk), CommittedConfigs()
    commits = store.history(ledger.expect, lookout.see, made_under.see)
    before = read_run_file(disk)
    ledger.check()
    made_under.check(before)
    if before is not None and commits:
        check_model(disk, before)
        check_genesis(store, commits)
    head = commits[-1].iteration if commits else None
    identified = identify(around, run_id, config, head=head, amend=amend)
    run_file, sources = identified.run_file, identified.sources
    lease.raise_above(commits)
    mended = ledger.open()
    for folder in FOLDERS:
        ensure_folder(disk, folder)
    _sweep(disk, commits)
    config_now, commits.config_sha256 = run_file.config_at(len(commits)), run_file.config_sha256_at(len(commits))
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
        config_hashes=run_file.config_sha256_at,
        sources=sources.__getitem__,
        model=around.found_model(run_file),
        base=run_file.base,
        commits=commits,
        lineage=commits[-1].lineage if commits else 0,
        pace=Pace.read(disk),
    )
    lines = journal.mend(commits)
    journal.event(
        "opened",
        run_id=run_id,
        origin=run_file.origin,
        papo=papo_version(),
        format=run_file.format,
        ledger_mended=mended and bool(commits),
        metrics_mended=lines,
        commits=len(commits),
    )
    for note in identified.notes:
        journal.event("noted", text=note)
        run.reporter.message(note)
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
    for folder in (".", *FOLDERS, CODE, BESIDE, folder_of(at), folder_of(at + 1)):
        sweep(disk, folder)
    for name in disk.names(SCRATCH):
        disk.remove(f"{SCRATCH}/{name}")
