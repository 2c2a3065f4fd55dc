"""What a run is at an opening: begun, gone on with as it was recorded, or amended; refused where it is another one.

A run is the folder that was named. The folder's name is its id, so a copy or a renamed folder is a run of its own,
which says in `origin` what it was before.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from papo.version import papo_version
from schemas.config import RunConfig
from tasks.checkpoints import FOLDER as CHECKPOINTS
from tasks.checkpoints import MANIFEST
from tasks.disk import Disk
from tasks.genesis import keep_files, keep_model
from tasks.modelfiles import POLICY, check_weights
from tasks.pins import as_begun, keep_code, without_pins
from tasks.run import BESIDE, RawData
from tasks.runfile import (
    RunFile,
    check_commit_config,
    check_sources,
    check_stored_configs,
    create_run_file,
    epoch,
    read_run_file,
    with_config,
    write_run_file,
)
from tasks.stored import StoredCommit
from tasks.surroundings import Surroundings

EXPORTS = "exports"


@dataclass(frozen=True)
class Identified:
    """What a run is from here on, and what there is to say about it."""

    run_file: RunFile
    sources: dict[str, RawData] = field(default_factory=dict[str, RawData])
    """The data by split, as far as it is there."""
    notes: tuple[str, ...] = ()


class CommittedConfigs:
    """Hears of each commit of the chain, and keeps by what config it was made: a stretch of iterations at a time."""

    def __init__(self) -> None:
        self._stretches: list[tuple[int, int, str]] = []

    def see(self, commit: StoredCommit) -> None:
        """Note the next commit."""
        first, sha256 = commit.iteration, commit.fields["config_sha256"]
        if self._stretches and self._stretches[-1][2] == sha256:
            first = self._stretches.pop()[0]
        self._stretches.append((first, commit.iteration, sha256))

    def check(self, run_file: RunFile | None) -> None:
        """Raises StoreError unless each was made under the config that the run file has for its iteration."""
        for first, last, sha256 in self._stretches:
            since = [] if run_file is None else [epoch.since for epoch in run_file.epochs]
            for iteration in (first, *(begin for begin in since if first < begin <= last)):
                check_commit_config(run_file, iteration=iteration, config_sha256=sha256)


def identify(
    around: Surroundings, run_id: str, config: RunConfig | None, *, head: int | None, amend: bool
) -> Identified:
    """What the run is, durable in its run file.

    `head`: the newest committed iteration; None before the genesis is. `config` None: the run's own. Raises
    ConfigError, DataError or StoreError, naming what differs from what was recorded.
    """
    run_file = read_run_file(around.disk)
    if run_file is not None:
        check_stored_configs(run_file)
    if run_file is not None and not around.advancing:
        return Identified(run_file.model_copy(update={"base": around.base}))
    if run_file is None or head is None:
        return _begun(around, run_id, run_file, config)
    return _gone_on(around, run_id, run_file, config, head=head, amend=amend)


def _begun(around: Surroundings, run_id: str, before: RunFile | None, config: RunConfig | None) -> Identified:
    """Nothing rests on the run file yet, so the config at hand is simply taken."""
    if before is None and config is None:
        raise ValueError(f"run {run_id} does not exist, so a config is needed")
    given = config or _latest(before)
    # What the last start found, which came to nothing, binds nobody.
    wanted, code = around.pinned(given if before is None else without_pins(given, like=before.latest))
    sources = around.sources(wanted)
    model, files = around.model(wanted)
    fresh = RunFile(
        papo=papo_version() if before is None else before.papo,
        run_id=run_id,
        origin=_origin(around, run_id, before),
        base=around.base,
        model=model,
        near={"base": around.near(around.base), "model": around.near(model)},
        kept=keep_model(around.disk, files),
        sources={split: raw.sha256 for split, raw in sources.items()},
        epochs=(epoch(wanted, since=0),),
        weights={} if before is None else before.weights,
    )
    fresh = fresh.model_copy(update={"weights": around.weights(fresh)})
    if before is not None and fresh != before:
        # A reference that was exported for the first policy of then.
        for name in around.disk.names(EXPORTS):
            around.disk.remove_tree(f"{EXPORTS}/{name}")
    for role, beside in around.beside(wanted).items():
        keep_files(around.disk, f"{BESIDE}/{role}", beside)
    keep_code(around.disk, code)
    if before is None:
        return Identified(create_run_file(around.disk, fresh), sources)
    if fresh != before:
        write_run_file(around.disk, fresh)
    return Identified(fresh, sources)


def _gone_on(
    around: Surroundings, run_id: str, before: RunFile, config: RunConfig | None, *, head: int, amend: bool
) -> Identified:
    given = config or before.latest
    wanted, code = around.pinned(given)
    wanted = as_begun(wanted, given=given, before=before.latest)
    now = with_config(before, wanted, head=head, amend=amend)
    origin = _origin(around, run_id, before)
    if origin != before.origin:
        now = now.model_copy(update={"run_id": run_id, "origin": origin})
    if around.base != now.base:
        near = {**now.near, "base": around.near(around.base)}
        now = now.model_copy(update={"base": around.base, "near": near})
    # By the config that now holds: a file may have moved, as long as its rows are the same.
    sources = (around.remaining or around.sources)(now.latest)
    named = named_sources(now.latest)
    gone = tuple(split for split in before.sources if split in named and split not in sources)
    check_sources(before, {split: raw.sha256 for split, raw in sources.items()}, named, gone=gone)
    if needed := _weights_needed(around.disk, now):
        weights = check_weights(before.weights, around.weights(now), needed=needed, run_id=run_id)
        now = now.model_copy(update={"weights": weights})
    keep_code(around.disk, code)
    if now != before:
        write_run_file(around.disk, now)
    return Identified(now, sources, tuple(_notes(before, now, gone)))


def _weights_needed(disk: Disk, run_file: RunFile) -> set[str]:
    """Of which models the weights are not in the run: of all until there is a checkpoint, of an adapter's base ever."""
    if not any(disk.exists(f"{CHECKPOINTS}/{name}/{MANIFEST}") for name in disk.names(CHECKPOINTS)):
        return set(run_file.weights)
    return {POLICY} & run_file.weights.keys() if run_file.latest.model.lora is not None else set()


def _origin(around: Surroundings, run_id: str, before: RunFile | None) -> tuple[str, ...]:
    if before is None:
        return ()
    is_here = before.run_id == run_id or around.is_called(before.run_id)
    return before.origin if is_here else (*before.origin, before.run_id)


def _notes(before: RunFile, now: RunFile, gone: Iterable[str]) -> Iterable[str]:
    if now.origin != before.origin:
        yield (
            f"This folder is a copy of run {before.run_id}, or was called so: it goes on here as run {now.run_id}, and "
            "nothing is written anywhere else."
        )
    named = named_sources(now.latest)
    for split in gone:
        yield (
            f"data.{split} ({named.get(split)}) is not there any more. It was prepared when the run began, so the run "
            "goes on without it."
        )
    for one in now.epochs[len(before.epochs) :]:
        yield f"The config is amended from iteration {one.since} on (config_sha256 {one.config_sha256[:16]}…)."


def _latest(run_file: RunFile | None) -> RunConfig:
    assert run_file is not None, "without a config there is a run file"
    return run_file.latest


def named_sources(config: RunConfig) -> dict[str, str]:
    """How the user named each data source."""
    return {
        split: getattr(source, "path", source.kind)
        for split, source in (("train", config.data.train), ("evaluation", config.data.evaluation))
        if source is not None
    }
