"""What refuses a start before anything is started: read from the config, its data and the run's record, in a second."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flows.proposals import Places, Proposals
from papo.errors import ConfigError, RunLocked, WayOut
from papo.later import Later
from schemas.config import RunConfig
from schemas.loading import load_config, overridden
from tasks.disk import LocalDisk
from tasks.pins import stand_in, without_pins
from tasks.relocated import base_now
from tasks.runfile import RunFile, read_run_file, with_config
from tasks.status import RunStatus, status_of

if TYPE_CHECKING:
    from tasks import scorable
else:
    # What reads frames takes seconds to be imported, and a run that has begun has no need of it here.
    scorable = Later("tasks.scorable")

ENDED = ("done", "stopped")
COPIED = ("ok", "off")
"""States of the copy in MLflow that leave nothing to be done."""


@dataclass(frozen=True)
class Wanted:
    """What a start asks for, and where the run stands; `before` is None for a new run."""

    config: RunConfig
    before: RunStatus | None = None
    is_changed: bool = False
    """Whether the run's config would be another one."""
    warnings: tuple[str, ...] = ()


def refuse(config: str | None, *, run_id: str, overrides: Sequence[str], amend: bool, places: Places) -> Wanted:
    """What is wanted, where nothing speaks against it. Raises ConfigError, DataError, StoreError or RunLocked."""
    folder = places.run(run_id)
    before, run_file = status_of(folder), read_run_file(LocalDisk(folder))
    if run_file is None and config is None:
        known = ", ".join(sorted(path.parent.name for path in places.runs.glob("*/run.yaml"))) or "none"
        raise ConfigError(
            f"There is no run {run_id!r} in {places.runs} (there are: {known}).",
            ways_out=[WayOut(text="Start one", command="train", arguments=("CONFIG.yaml",))],
        )
    if before is None or run_file is None or before.ledger_head is None:
        return _begun(config, run_file, folder, overrides)
    if before.state == "running":
        holder = before.holder or {}
        raise RunLocked(
            f"The run in {folder} is locked by pid {holder.get('pid')} on {holder.get('host')}, which is "
            "advancing it now. Wait for it or stop it (its work so far is kept), then start again."
        )
    wanted = load_config(Path(config), overrides) if config is not None else _recorded(run_file, folder, overrides)
    return _continued(before, run_file, wanted, run_id=run_id, amend=amend)


def _begun(config: str | None, run_file: RunFile | None, folder: Path, overrides: Sequence[str]) -> Wanted:
    """A run of which nothing is committed: its config is simply taken, and its data is tried."""
    if config is not None:
        wanted, base = load_config(Path(config), overrides), Path(config).parent
    else:
        assert run_file is not None, "without a config there is a run file"
        wanted, base = _recorded(run_file, folder, overrides), base_now(run_file, folder)
    return Wanted(wanted, warnings=tuple(scorable.try_data(wanted, base).warnings))


def _recorded(run_file: RunFile, folder: Path, overrides: Sequence[str]) -> RunConfig:
    config = run_file.latest
    stand_in(config, folder)
    return overridden(config, overrides, named=f"run {folder.name}") if overrides else config


def _continued(before: RunStatus, run_file: RunFile, wanted: RunConfig, *, run_id: str, amend: bool) -> Wanted:
    if wanted.iterations < before.iteration:
        raise ConfigError(
            f"iterations is {wanted.iterations}, but run {run_id} has had {before.iteration} already, and what is "
            f"committed stays. Ask for {before.iteration} or more, or take the policy as it was then.",
            ways_out=[
                WayOut(
                    text=f"The policy after {wanted.iterations}",
                    command="export",
                    arguments=(run_id,),
                    options=(("--at", str(wanted.iterations)),),
                )
            ],
        )
    known, asked = without_pins(run_file.latest), without_pins(wanted)
    if known == run_file.latest:
        # What is pinned by content is compared when the run is opened, with what it is now.
        with_config(run_file, wanted, head=before.iteration - 1, amend=amend)
    return Wanted(wanted, before, is_changed=known != asked)


def finished(wanted: Wanted, name: str, by: Proposals) -> str | None:
    """What to say of a run that has nothing left to do; None where there is something."""
    before = wanted.before
    if before is None or before.state not in ENDED or wanted.is_changed:
        return None
    if before.tracking.get("state") not in COPIED:
        # The next start brings the copy up to the journal.
        return None
    if before.state == "stopped":
        return (
            f"Run {name} has stopped after {before.iteration} iterations, and would at once again: {before.reason}. "
            f"Nothing was started. Its record: {by('status', name)}"
        )
    if before.iteration < before.iterations:
        return None
    further = by("resume", name, options=[("--set", f"iterations={2 * max(before.iterations, 1)}")])
    return f"Run {name} is done: {before.iteration} of {before.iterations} iterations. Go further: {further}"
