"""Files and folders that a config names: where its paths lead, and whether what is there can be used."""

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from papo.rewards import RewardModel
from schemas.config import RunConfig
from schemas.data import FileSource, HuggingFaceSource, plain_sources
from schemas.faults import Fault, Field
from schemas.rewardchecks import judges_of
from schemas.sft import FilePairs, ModelFolder, SftConfig
from schemas.weightfiles import id_faults, weight_faults

_DATA = (".jsonl", ".parquet")
_HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")


def resolve(path: str, base: Path) -> Path:
    """Where a path of a config leads: from the config's folder `base` if there is such a thing there, else from the
    working folder. The path stays in the config as it was written, so that a config means the same on two machines."""
    written = Path(path).expanduser()
    beside = base / written
    return beside if beside.exists() else written


def file_faults(config: RunConfig | SftConfig, base: Path) -> list[Fault]:
    """Files and folders that the config names and that are not there, or not what they must be."""
    files, folders = _of_sft(config) if isinstance(config, SftConfig) else _of_run(config)
    found = [fault for field, written in files if (fault := _file_fault(field, written, base))]
    if isinstance(config, RunConfig):
        datasets = [(place, each) for place, each in plain_sources(config.data) if isinstance(each, HuggingFaceSource)]
        found += [fault for place, each in datasets if (fault := _dataset_fault(place, each, base))]
    return found + [fault for field, written in folders if (fault := _folder_fault(field, written, base))]


_Named = tuple[list[tuple[Field, str]], list[tuple[Field, str]]]


def _of_run(config: RunConfig) -> _Named:
    """The files, and the model folders."""
    files: list[tuple[Field, str]] = [
        ((*place, "path"), source.path)
        for place, source in plain_sources(config.data)
        if isinstance(source, FileSource)
    ]
    model = config.model
    if model.cold_start is not None:
        files.append((("model", "cold_start"), model.cold_start))
    models = (("model", model), ("critic", config.critic), ("implicit_prm", config.implicit_prm))
    folders: list[tuple[Field, str]] = [
        ((name, "path"), part.path) for name, part in models if part is not None and part.path is not None
    ]
    judges = [(place, judge) for place, judge in judges_of(config) if isinstance(judge, RewardModel)]
    return files, [*folders, *(((*place, "path"), judge.path) for place, judge in judges)]


def _of_sft(config: SftConfig) -> _Named:
    phases = [(index, phase.data) for index, phase in enumerate(config.phases)]
    files: list[tuple[Field, str]] = [
        (("phases", index, "data", "path"), data.path) for index, data in phases if isinstance(data, FilePairs)
    ]
    return files, [(("model", "path"), config.model.path)] if isinstance(config.model, ModelFolder) else []


def _file_fault(field: Field, written: str, base: Path) -> Fault | None:
    path = resolve(written, base)
    if path.is_dir():
        return Fault(field, f"is {written}, which is a folder: name the file.")
    if not path.is_file():
        return _not_found(field, written, base)
    if field[0] != "model" and path.suffix not in _DATA:
        return Fault(field, f"is {written}, but data files end in {' or '.join(_DATA)}: convert it to one of them.")
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        return Fault(field, f"is {written}, which cannot be read ({error.strerror}): check its permissions.")
    return None


def _dataset_fault(place: Field, source: HuggingFaceSource, base: Path) -> Fault | None:
    if find_spec("datasets") is None:
        text = "is huggingface, which needs the package datasets: install it with pip install -e '.[datasets]'."
        return Fault((*place, "kind"), text)
    field = (*place, "path")
    path = resolve(source.path, base)
    if path.is_file():
        return Fault(field, f"is {source.path}, which is a file: use kind: file, or name the dataset's folder.")
    if not path.is_dir() and not is_hub_name(source.path):
        return _not_found(field, source.path, base)
    return None


def is_hub_name(path: str) -> bool:
    """Whether a dataset's path can be a name on the hub, where there is no such folder."""
    return _HUB_NAME.fullmatch(path) is not None


def _folder_fault(field: Field, written: str, base: Path) -> Fault | None:
    folder = resolve(written, base)
    if not folder.is_dir():
        if folder.exists():
            return Fault(field, f"is {written}, which is a file: name the folder that holds config.json.")
        return _not_found(field, written, base)
    lacking = [] if (folder / "config.json").is_file() else ["config.json"]
    if not any(folder.glob("*.safetensors")):
        lacking.append("weights in *.safetensors (other formats must be converted first)")
    lacking += _missing_shards(folder)
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        lacking.append("a tokenizer (tokenizer.json)")
    if lacking:
        return Fault(field, f"is {written}, which lacks {', '.join(lacking)}: name the folder of a whole model.")
    broken = [*weight_faults(folder), *id_faults(folder, generates=field[0] == "model")]
    if not broken:
        return None
    return Fault(field, f"is {written}, which has {'; '.join(broken)}: restore the folder from where it came from.")


def _missing_shards(folder: Path) -> list[str]:
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return []
    try:
        shards = cast("dict[str, Any]", json.loads(index.read_text(encoding="utf-8")))["weight_map"].values()
    except (ValueError, KeyError, AttributeError):
        return [f"a readable {index.name}"]
    return sorted({str(shard) for shard in shards if not (folder / str(shard)).is_file()})


def _not_found(field: Field, written: str, base: Path) -> Fault:
    looked = "" if Path(written).is_absolute() else f" (looked for in {base.resolve()} and {Path.cwd()})"
    return Fault(field, f"is {written}, which does not exist{looked}: check the path.")
