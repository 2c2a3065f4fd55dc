"""What decides results and is outside the config and the run: the code of custom rewards, the files of reward models.

Each is pinned by its hash in the config itself (`code`, `files`), so that it is identity as any other field: another
hash is refused by name, or is a recorded amendment. Code is kept in the run too, and used from there where it is gone.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from papo.errors import ConfigError, Damaged, WayOut
from papo.rewards import CustomReward, OutcomeReward, RewardModel
from papo.rewards.custom import load_edited, use_copy
from papo.rewards.customcode import code_sha256
from schemas.config import RunConfig
from schemas.faults import Field
from schemas.rewardchecks import judges_of
from tasks.disk import Disk
from tasks.publish import ensure_folder, publish_folder, temporary

CODE = "code"
"""Below the run: a folder for each hash."""
_FIELDS = {"custom": "code", "reward_model": "files"}


def pinned(
    config: RunConfig, *, run_id: str, hashed: Callable[[RewardModel], str]
) -> tuple[RunConfig, dict[str, bytes]]:
    """`config` with the hash of each reward's code or files, and the code by its path in the run.

    Raises ConfigError, naming both hashes, where one is not what the config says.
    """
    code: dict[str, bytes] = {}
    faults: list[str] = []
    amended: list[tuple[str, str]] = []
    for place, judge in _outside(config):
        if isinstance(judge, CustomReward):
            found = _source_of(judge)
            now = code_sha256(found)
            code |= {f"{_folder(now)}/{name}": data for name, data in found.items()}
            what = f"The code of {judge.target}"
        else:
            now, what = hashed(judge), f"The files of the reward model {judge.path}"
        said = getattr(judge, _FIELDS[judge.kind])
        if said is not None and said != now:
            name = ".".join((*map(str, place), _FIELDS[judge.kind]))
            faults.append(
                f"{what} is not what {name} says: sha256 {now}, and {said} there. Restore it, start another run "
                "(--run-id NAME), or go on with it from the next iteration on, as a recorded amendment."
            )
            amended.append(("--amend", f"{name}={now}"))
        config = _with(config, place, now)
    if faults:
        way_out = WayOut(text="As an amendment", command="resume", arguments=(run_id,), options=tuple(amended))
        raise ConfigError("\n".join(faults), ways_out=[way_out])
    return config, code


def _source_of(judge: CustomReward) -> dict[str, bytes]:
    try:
        load_edited(judge.target)
        return judge.sources()
    except Exception as error:  # it is anybody's code
        raise ConfigError(
            f"The reward {judge.target} cannot be loaded ({type(error).__name__}: {error}), and the run has kept no "
            "code that could stand in for it. Put its source back where it was."
        ) from error


def without_pins(config: RunConfig, *, like: RunConfig | None = None) -> RunConfig:
    """`config` with pins taken away: all, or those that are the same in `like`."""
    said = {} if like is None else {place: _pin(judge) for place, judge in _outside(like)}
    for place, judge in _outside(config):
        if like is None or said.get(place) == _pin(judge):
            config = _with(config, place, None)
    return config


def as_begun(config: RunConfig, *, given: RunConfig, before: RunConfig) -> RunConfig:
    """`config` without the pins that neither `given` (it before they were looked up) nor the run has: it is of a
    release that had none, and its hash stays what it was."""
    had, asked = dict(_outside(before)), dict(_outside(given))
    for place, judge in _outside(config):
        was = had.get(place)
        if was is not None and was.kind == judge.kind and _pin(was) is None and _pin(asked[place]) is None:
            config = _with(config, place, None)
    return config


def keep_code(disk: Disk, code: dict[str, bytes]) -> None:
    """Keep source in the run, below a folder for its hash, which is there whole or not at all."""
    for folder in sorted({path.partition("/")[0] for path in code}):
        files = {path.partition("/")[2]: data for path, data in code.items() if path.startswith(f"{folder}/")}
        target = f"{CODE}/{folder}"
        if disk.exists(target):
            if all(disk.exists(f"{target}/{name}") and _is(disk, f"{target}/{name}", files[name]) for name in files):
                # Its creator may have died before its name was synced.
                disk.sync_folder(CODE)
                continue
            disk.remove_tree(target)
        ensure_folder(disk, CODE)
        staged = temporary(disk, target)
        if disk.exists(staged):
            disk.remove_tree(staged)
        disk.make_folder(staged)
        for name, data in files.items():
            for depth in range(1, len(Path(name).parts)):
                inner = "/".join((staged, *Path(name).parts[:depth]))
                if not disk.exists(inner):
                    disk.make_folder(inner)
            disk.write(f"{staged}/{name}", data)
        publish_folder(disk, staged, target)


def stand_in(config: RunConfig, run_folder: Path) -> list[str]:
    """Load custom rewards whose source is gone from what the run has kept of it; their targets. Raises Damaged where
    that is not what it was."""
    found: list[str] = []
    for _, judge in _outside(config):
        if not isinstance(judge, CustomReward) or judge.code is None:
            continue
        folder = run_folder / CODE / _folder(judge.code)
        if folder.is_dir() and use_copy(judge.target, folder):
            files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.py"))}
            if code_sha256(files) != judge.code:
                raise Damaged(
                    f"{folder}, which stands in for {judge.target}, is not what was kept there. Restore it from a copy "
                    "of the run directory, or put the source back in its place."
                )
            found.append(judge.target)
    return found


def _outside(config: RunConfig) -> Iterator[tuple[Field, CustomReward | RewardModel]]:
    for place, judge in judges_of(config):
        if isinstance(judge, CustomReward | RewardModel):
            yield place, judge


def _pin(judge: CustomReward | RewardModel) -> str | None:
    return judge.code if isinstance(judge, CustomReward) else judge.files


def _with(config: RunConfig, place: Field, pin: str | None) -> RunConfig:
    judges = dict(judges_of(config))
    judge: OutcomeReward = judges[place]
    assert isinstance(judge, CustomReward | RewardModel), "only these have pins"
    changed = replace(judge, code=pin) if isinstance(judge, CustomReward) else replace(judge, files=pin)
    name = str(place[0])
    section = getattr(config, name).model_copy(update={"outcome": changed})
    return config.model_copy(update={name: section})


def _folder(code: str) -> str:
    return code[:16]


def _is(disk: Disk, path: str, data: bytes) -> bool:
    return disk.digest(path) == (sha256(data).hexdigest(), len(data))
