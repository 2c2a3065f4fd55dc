"""`run.yaml`: what a run is. The resolved config, as epochs where it was amended, its model and its data's hashes."""

import json
from collections.abc import Collection
from typing import Any, cast

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from papo.errors import ConfigError, Damaged, DataError, LedgerMismatch, StoreError, WayOut
from papo.version import papo_version
from schemas.canonical import sha256_of
from schemas.config import RunConfig
from schemas.records import Record
from tasks.disk import Disk
from tasks.modelfiles import Weights
from tasks.publish import create_once, replace

PATH = "run.yaml"
FORMAT = 2
"""Of a run directory. 1 was without the number, without `origin` and without the hashes of custom code."""

SPENT = ("data.train", "data.evaluation", "data.prompt", "data.overlong_prompts", "sampling.max_prompt_length")
"""Fields that only the genesis reads."""


_YAML = TypeAdapter(dict[str, Any])


class ConfigEpoch(Record):
    """A config and the first iteration that runs under it."""

    since: int
    config_sha256: str
    config: dict[str, Any]

    def since_at(self, iteration: int) -> "ConfigEpoch":
        """The same from another iteration on."""
        return self.model_copy(update={"since": iteration})


class RunFile(Record):
    format: int = FORMAT
    """Of the run directory; a file that does not say it is of the first."""
    papo: str | None = None
    """The release that began the run."""
    run_id: str
    """The folder's name when the run was last advanced."""
    origin: tuple[str, ...] = ()
    """Names that the folder, or the one that it is a copy of, had before; oldest first."""
    base: str
    """The folder that relative paths in the config are relative to."""
    model: str
    """The folder that version 0 was loaded from."""
    near: dict[str, str] = Field(default_factory=dict)
    """The ways to `base` and `model` from the run's folder, which hold where a project was moved as a whole."""
    sources: dict[str, str]
    """Hash of each data source when the run began."""
    epochs: tuple[ConfigEpoch, ...]
    kept: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of each file of `model/`; empty for a run from before they were recorded."""
    weights: Weights = Field(default_factory=dict)
    """Files of weights of the models that the run starts from and does not keep; empty likewise."""

    @property
    def latest(self) -> RunConfig:
        return RunConfig.model_validate(self.epochs[-1].config)

    def epoch_at(self, iteration: int) -> ConfigEpoch:
        return [epoch for epoch in self.epochs if epoch.since <= max(iteration, 0)][-1]

    def config_at(self, iteration: int) -> RunConfig:
        return RunConfig.model_validate(self.epoch_at(iteration).config)

    def config_sha256_at(self, iteration: int) -> str:
        """As it was recorded: a later release may have fields that would give another one."""
        return self.epoch_at(iteration).config_sha256


def read_run_file(disk: Disk) -> RunFile | None:
    """What the run is, or None if none has begun here. Raises Damaged if the file cannot be read."""
    if not disk.exists(PATH):
        return None
    try:
        fields = _YAML.validate_python(yaml.safe_load(disk.read(PATH)))
        said = fields.pop("sha256", None)
        _refuse_later_formats(fields)
        run_file = RunFile.model_validate({"format": 1, **fields})
    except (yaml.YAMLError, UnicodeDecodeError, ValidationError) as error:
        raise Damaged(f"{PATH} cannot be read ({error}). Restore it from a copy of the run directory.") from None
    # Over the fields that were written: one that a later papo adds changes nothing here.
    if said != sha256_of(fields):
        raise Damaged(
            f"{PATH} is not what papo wrote: its sha256 does not fit the rest. It is a record and not edited by hand: "
            "restore it from a copy of the run directory, then change fields when the run is resumed (--set, --amend)."
        )
    return run_file


def _refuse_later_formats(fields: dict[str, Any]) -> None:
    stated = fields.get("format", 1)
    if isinstance(stated, int) and stated > FORMAT:
        made_by = f" (papo {fields['papo']} began it)" if fields.get("papo") else ""
        raise StoreError(
            f"The run is of format {stated}{made_by}; this is papo {papo_version()}, which knows formats 1 to "
            f"{FORMAT}. Nothing in it was changed. Use the papo that advanced it last, or a later one."
        )


def check_stored_configs(run_file: RunFile) -> None:
    """Raises Damaged unless each epoch's config is the one that its hash is of."""
    for epoch in run_file.epochs:
        try:
            found = stored_sha256(epoch.config)
        except ValidationError as error:
            fault = error.errors()[0]
            raise StoreError(
                f"The config of the run from iteration {epoch.since} on has a field that papo {papo_version()} does "
                f"not take ({'.'.join(map(str, fault['loc']))}: {fault['msg']}). Use the papo that advanced it last."
            ) from None
        if found != epoch.config_sha256:
            raise Damaged(
                f"{PATH} is not what papo wrote: its config from iteration {epoch.since} on hashes to {found[:16]}…, "
                f"but config_sha256 says {epoch.config_sha256[:16]}…. It is a record and not edited by hand: restore "
                "it from a copy of the run directory, then change fields when the run is resumed (--set, --amend)."
            )


def check_commit_config(run_file: RunFile | None, *, iteration: int, config_sha256: str) -> None:
    """Raises StoreError unless a commit was made under the config that the run file has for it."""
    if run_file is None:
        raise Damaged(
            f"{PATH} is gone, but iterations are committed here, so what they were made of is not known. Restore it "
            "from a copy of the run directory, or start a new run (--run-id NAME)."
        )
    recorded = run_file.config_sha256_at(iteration)
    if config_sha256 != recorded:
        at = "The genesis" if iteration < 0 else f"Iteration {iteration}"
        raise LedgerMismatch(
            f"{at} was committed under the config {config_sha256[:16]}…, but {PATH} has {recorded[:16]}… for it: one "
            "of them is of another run, or was changed after it was written. Restore the run directory from a copy, or "
            "start a new run."
        )


def stored_sha256(config: dict[str, Any]) -> str:
    """The hash of a stored config's identity, over the fields that were stored: one that this release adds to the
    config, and that the run has never heard of, is left out. Raises ValidationError for a config that is none."""
    return sha256_of(_shared(RunConfig.model_validate(config).identity, config))


def _shared(identity: Any, stored: Any) -> Any:
    """`identity` without what `stored` does not have."""
    if isinstance(identity, dict) and isinstance(stored, dict):
        known, there = cast("dict[str, Any]", identity), cast("dict[str, Any]", stored)
        return {name: _shared(value, there[name]) for name, value in known.items() if name in there}
    if isinstance(identity, list) and isinstance(stored, list):
        pairs = zip(cast("list[Any]", identity), cast("list[Any]", stored), strict=True)
        return [_shared(value, there) for value, there in pairs]
    return cast("Any", identity)


def create_run_file(disk: Disk, run_file: RunFile) -> RunFile:
    """Begin a run; where another process has begun it in the meantime, its file holds."""
    create_once(disk, PATH, _encode(run_file))
    return read_run_file(disk) or run_file


def write_run_file(disk: Disk, run_file: RunFile) -> None:
    """Change what the run is (an amendment, a new horizon), all or nothing."""
    replace(disk, PATH, _encode(run_file))


def _encode(run_file: RunFile) -> bytes:
    fields = run_file.model_copy(update={"format": FORMAT}).model_dump(mode="json")
    return yaml.safe_dump({**fields, "sha256": sha256_of(fields)}, sort_keys=False).encode()


def epoch(config: RunConfig, *, since: int) -> ConfigEpoch:
    """A config as it is kept in the run file."""
    return ConfigEpoch(since=since, config_sha256=config.sha256, config=config.model_dump(mode="json"))


def _same_identity(before: ConfigEpoch, config: RunConfig) -> ConfigEpoch:
    """An epoch with the horizon and operational fields of `config`, under the hash that its commits name."""
    dumped = config.model_dump(mode="json")
    known = _merged(dumped, before.config, config.identity)
    return before.model_copy(update={"config": known})


def _merged(dumped: Any, stored: Any, identity: Any) -> Any:
    """`dumped` without identity fields that `stored` does not have: they are not in its hash."""
    if not (isinstance(dumped, dict) and isinstance(stored, dict)):
        return cast("Any", dumped)
    new, old = cast("dict[str, Any]", dumped), cast("dict[str, Any]", stored)
    hashed = cast("dict[str, Any]", identity) if isinstance(identity, dict) else {}
    return {
        name: _merged(value, old.get(name), hashed.get(name))
        for name, value in new.items()
        if name in old or name not in hashed
    }


def with_config(run_file: RunFile, config: RunConfig, *, head: int, amend: bool) -> RunFile:
    """The run under `config` from the next iteration (`head` + 1) on.

    What is operational, and the horizon, may change freely. Raises ConfigError where an identity field differs and
    this is not an amendment, naming each such field, and where a field is amended that was used up at the start.
    """
    now = run_file.config_at(head + 1)
    if config == now:
        return run_file
    changed = differences(now.identity, config.identity)
    spent = [name for name, _, _ in changed if name.startswith(SPENT)]
    if config.model != run_file.latest.model:
        spent.append("model")
    if spent and (amend or not changed):
        raise ConfigError(
            f"{', '.join(spent)} cannot be changed for run {run_file.run_id}: its data was prepared and its first "
            "policy loaded when it began. Start another run (--run-id NAME)."
        )
    if amend and models_held(now) != models_held(config):
        raise ConfigError(
            f"With this change run {run_file.run_id} would hold {models_held(config)} instead of {models_held(now)}, "
            "which were opened when it began. Start another run from an export of its policy (model.path).",
            ways_out=[WayOut(text="Export it", command="export", arguments=(run_file.run_id,))] if head >= 0 else [],
        )
    if changed and not amend:
        lines = "\n".join(f"  {name}: {was!r} in the run, {now_!r} now" for name, was, now_ in changed)
        text = f"Run {run_file.run_id} exists with another config:\n{lines}\nStart another run (--run-id NAME)"
        if spent or models_held(now) != models_held(config):
            raise ConfigError(f"{text}: what was done when this one began cannot be done again.")
        way_out = WayOut(
            text="As an amendment",
            command="resume",
            arguments=(run_file.run_id,),
            options=tuple(("--amend", spelled) for spelled in amendments(now, config)),
        )
        raise ConfigError(
            f"{text}, or change it from the next iteration on, as a recorded amendment.", ways_out=[way_out]
        )
    kept = [epoch_ for epoch_ in run_file.epochs if epoch_.since <= max(head + 1, 0)]
    if kept[-1].since > head or (not changed and config.engine.sums == now.engine.sums):
        # Nothing has run under it yet; or only operational and horizon fields differ, which are in no key.
        kept[-1] = epoch(config, since=kept[-1].since) if changed else _same_identity(kept[-1], config)
    else:
        kept.append(epoch(config, since=head + 1) if changed else _same_identity(kept[-1], config).since_at(head + 1))
    return run_file.model_copy(update={"epochs": tuple(kept)})


def amendments(before: RunConfig, after: RunConfig) -> list[str]:
    """The fields that make `after` of `before`, as they are typed (`a.b=c`); a section of another kind as a whole."""
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    found: dict[str, str] = {}
    for name, _, _ in differences(before.identity, after.identity):
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):
            was, now = _at(old, parts[:depth]), _at(new, parts[:depth])
            is_section = isinstance(was, dict) and isinstance(now, dict)
            if not is_section or cast("dict[str, Any]", was).get("kind") != cast("dict[str, Any]", now).get("kind"):
                found[".".join(parts[:depth])] = json.dumps(now, ensure_ascii=False)
                break
    return [f"{name}={value}" for name, value in found.items()]


def _at(section: Any, parts: list[str]) -> Any:
    for part in parts:
        section = cast("dict[str, Any]", section).get(part) if isinstance(section, dict) else None
    return section


def models_held(config: RunConfig) -> str:
    """The models that a run opens at its start, in words."""
    held = {
        "a policy": True,
        "a reference": config.needs_reference,
        "a critic": config.critic_settings is not None,
        "an implicit PRM": config.prm_settings is not None,
        "an adaptive KL coefficient": config.algorithm.needs.kl_control,
    }
    return ", ".join(name for name, is_held in held.items() if is_held)


def check_sources(run_file: RunFile, now: dict[str, str], named: dict[str, str], *, gone: Collection[str] = ()) -> None:
    """Raises DataError if a data source is not what it was when the run began; one of `gone` may not be there."""
    for split, sha256 in run_file.sources.items():
        if now.get(split) != sha256 and split not in gone:
            raise DataError(
                f"data.{split} ({named.get(split, 'source')}) has changed since run {run_file.run_id} began: it hashes "
                f"to {str(now.get(split))[:16]}… and was {sha256[:16]}… then. Restore the file, or start a new run on "
                "the new data (--run-id NAME)."
            )


def differences(before: Any, after: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """(dotted field, before, after) of each leaf that differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        fields: list[tuple[str, Any, Any]] = []
        left, right = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        for key in [*left, *(key for key in right if key not in left)]:
            fields += differences(left.get(key), right.get(key), f"{name}.{key}" if name else key)
        return fields
    return [] if before == after else [(name, before, after)]
