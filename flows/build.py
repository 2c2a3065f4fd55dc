"""From a config file to an open run on this machine: the folders, the engine, the data, the first policy."""

from collections.abc import Sequence
from pathlib import Path

from flows.generators import generator_in
from flows.judges import judge_of, meet
from flows.proposals import USUAL, Places
from papo.engines.generators import Embedded
from papo.engines.host import EngineHost
from papo.engines.model_folder import kept_files
from papo.engines.protocol import Engine
from papo.engines.settings import EngineSettings
from papo.errors import ConfigError, WayOut
from papo.rewards import RewardModel
from schemas.config import RunConfig
from schemas.loading import load_config, overridden, resolve
from schemas.records import IterationState
from schemas.runids import run_id_of
from schemas.sft import SftConfig
from tasks.clock import WallClock
from tasks.disk import LocalDisk
from tasks.lock import FileLease
from tasks.looking import LookingDisk, NoLease
from tasks.modelfiles import POLICY, Weights, files_sha256, weights_in
from tasks.opening import open_run
from tasks.pins import pinned, stand_in
from tasks.relocated import base_now, found_model, from_run, is_called
from tasks.run import Reporter, Run
from tasks.runfile import RunFile, read_run_file
from tasks.scorable import try_data
from tasks.sft import train_model
from tasks.sources import gone_sources, read_sources
from tasks.surroundings import Surroundings


def open_from(
    config: str | None,
    *,
    run_id: str | None = None,
    overrides: Sequence[str] = (),
    amend: bool = False,
    reporter: Reporter,
    places: Places = USUAL,
    advancing: bool = True,
) -> tuple[Run, IterationState | None]:
    """Open the run of a config file (a new one, or the one with that id), or with `config` None an existing one.

    The run id is the file's name unless given. `advancing` False: it is only looked at, so that nothing in its folder
    changes, nobody is kept from advancing it, its judge is not asked for, and its data and its reward's code and files
    may be others or gone.
    Raises what `open_run` raises, and ConfigError with all faults of the file before anything is created.
    """
    if config is None:
        return _reopen(run_id, overrides, amend=amend, reporter=reporter, places=places, advancing=advancing)
    path = Path(config)
    name = run_id_of(path, run_id)
    loaded = load_config(path, overrides)
    return open_config(name, loaded, base=path.parent, reporter=reporter, places=places, advancing=advancing)


def train_sft(config: str, *, overrides: Sequence[str] = (), reporter: Reporter, places: Places = USUAL) -> Path:
    """The folder of the model that an SFT config makes."""
    path = Path(config)
    loaded = load_config(path, overrides, kind=SftConfig)
    return train_model(
        loaded, places.models, base=path.parent, engine=_engine_in(places.models / "logs", None), reporter=reporter
    )


def _reopen(
    run_id: str | None, overrides: Sequence[str], *, amend: bool, reporter: Reporter, places: Places, advancing: bool
) -> tuple[Run, IterationState | None]:
    folder = places.run(run_id or "")
    run_file = read_run_file(LocalDisk(folder)) if folder.is_dir() else None
    if run_file is None:
        known = ", ".join(sorted(path.parent.name for path in places.runs.glob("*/run.yaml"))) or "none"
        raise ConfigError(
            f"There is no run {run_id!r} in {places.runs} (there are: {known}).",
            ways_out=[WayOut(text="Start one", command="train", arguments=("CONFIG.yaml",))],
        )
    config = run_file.latest
    if advancing:
        stand_in(config, folder)
    if overrides:
        config = overridden(config, overrides, named=f"run {run_id}")
    return open_config(
        folder.name,
        config,
        base=base_now(run_file, folder),
        amend=amend,
        reporter=reporter,
        places=places,
        advancing=advancing,
    )


def open_config(
    run_id: str,
    config: RunConfig,
    *,
    base: Path,
    amend: bool = False,
    reporter: Reporter,
    places: Places,
    advancing: bool = True,
) -> tuple[Run, IterationState | None]:
    """Open the run with that id under a config whose relative paths start from `base`."""
    folder = places.run(run_id)
    if advancing:
        stand_in(config, folder)
        # For its errors: they come before anything is created.
        generator_in(folder, config)
    judge = judge_of(config) if advancing else None
    if judge is not None:
        meet(judge, config, resumed=(folder / "run.yaml").exists(), say=reporter.message)
    disk = LocalDisk(folder) if advancing else LookingDisk(folder)
    disk.root.mkdir(parents=True, exist_ok=True)
    around = Surroundings(
        disk=disk,
        base=str(base.resolve()),
        clock=WallClock(),
        lease=lambda: FileLease(folder / "lock") if advancing else NoLease(),
        engine=_engine_in(disk.root / "logs", disk.root / "engine.json"),
        sources=lambda config: try_data(config, base).sources,
        remaining=lambda config: read_sources(config, base, without=gone_sources(config, base)),
        model=lambda config: _first_policy(config, base, reporter, places),
        reporter=reporter,
        advancing=advancing,
        generator=lambda config: generator_in(folder, config) if advancing else Embedded(),
        judge=judge,
        pinned=lambda config: pinned(config, run_id=run_id, hashed=lambda model: files_sha256(_of(model, base))),
        is_called=lambda name: is_called(folder, name),
        found_model=lambda run_file: found_model(run_file, base, folder),
        near=lambda path: from_run(path, folder),
        beside=lambda config: _beside(config, base),
        weights=lambda run_file: _weights(run_file, base, folder),
    )
    return open_run(around, run_id, config, amend=amend)


def _first_policy(config: RunConfig, base: Path, reporter: Reporter, places: Places) -> tuple[str, dict[str, bytes]]:
    if config.model.cold_start is not None:
        sft = resolve(config.model.cold_start, base)
        reporter.message(f"Cold start: supervised training by {sft}")
        folder = train_sft(str(sft), reporter=reporter, places=places)
    else:
        assert config.model.path is not None, "the config's checks demand one of the two"
        folder = resolve(config.model.path, base)
    return str(folder.resolve()), kept_files(folder)


def _beside(config: RunConfig, base: Path) -> dict[str, dict[str, bytes]]:
    return {role: kept_files(folder) for role, folder in _folders_beside(config, base).items()}


def _folders_beside(config: RunConfig, base: Path) -> dict[str, Path]:
    parts = (("critic", config.critic_settings), ("implicit_prm", config.prm_settings))
    return {role: resolve(part.path, base) for role, part in parts if part is not None and part.path is not None}


def _weights(run_file: RunFile, base: Path, folder: Path) -> Weights:
    places = {POLICY: Path(found_model(run_file, base, folder))} | _folders_beside(run_file.latest, base)
    return {role: weights_in(place, run_file.weights.get(role, {})) for role, place in places.items()}


def _of(model: RewardModel, base: Path) -> str:
    return str(resolve(model.path, base).resolve())


class _engine_in:
    """Makes engines whose ranks log to a folder."""

    def __init__(self, logs: Path, pid_file: Path | None) -> None:
        self._logs = logs
        self._pid_file = pid_file

    def __call__(self, settings: EngineSettings) -> Engine:
        self._logs.mkdir(parents=True, exist_ok=True)
        return EngineHost(settings, log=self._logs / "engine.log", pid_file=self._pid_file)
