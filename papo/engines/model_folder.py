"""A model folder's files without its weights: what is kept of them, what they say, how an export gives them back.

No torch here: the process that composes a run keeps them before any engine has started.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from papo.errors import EngineError

CONFIG, GENERATION = "config.json", "generation_config.json"
RECORD = "papo.json"
"""What an export says of where it came from: of that version of the policy, not of the next."""
WEIGHTS = {
    ".bin", ".ckpt", ".gguf", ".h5", ".msgpack", ".npz", ".onnx", ".onnx_data", ".ot", ".pdparams", ".pt", ".pth",
    ".safetensors", ".tflite",
}  # fmt: skip
"""What weights are stored under, in any framework."""
LARGEST = 256 << 20
"""Bytes above which a file is taken for weights whatever it is called; the largest tokenizers have 40 MB."""
_OTHER_FOLDERS = ("checkpoint-", "__pycache__")
"""Folders that trainers and Python leave in a model's own."""


def kept_files(folder: Path) -> dict[str, bytes]:
    """The contents of all files but weights, by their path in the folder: whatever a library may read there, such as
    tokenizers, chat templates, generation defaults, processors and code, but also notes and the licence."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in _kept(folder)}


def _kept(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", *_OTHER_FOLDERS)):
            continue
        if path.is_dir():
            yield from _kept(path)
        elif path.is_file() and not _is_weights(path) and path.name != RECORD:
            yield path


def _is_weights(path: Path) -> bool:
    return (
        path.suffix in WEIGHTS
        # It maps tensors to files of weights, which an export cuts anew.
        or path.name.endswith((".safetensors.index.json", ".bin.index.json"))
        or path.stat().st_size > LARGEST
    )


def write_kept(files: Mapping[str, bytes], folder: Path, *, dtype: str, architecture: str | None) -> None:
    """Put `files` beside weights that were written in `dtype`: each as it was, but for what config.json says of them.

    `architecture`: the class of the weights; None leaves the config.json that is there.
    """
    for name, data in files.items():
        if name != CONFIG:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    if GENERATION not in files:
        # Written from the model in memory, whose own settings are neutral: a reader would find no end token in it.
        (folder / GENERATION).unlink(missing_ok=True)
    if architecture is not None and CONFIG in files:
        config = json.loads(files[CONFIG])
        if config.get("architectures") != [architecture]:
            config["architectures"] = [architecture]
        _set_dtype(config, dtype)
        (folder / CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _set_dtype(config: dict[str, Any], dtype: str) -> None:
    """Where it names one: a reader would round the weights to it."""
    for key, held in config.items():
        if key in ("dtype", "torch_dtype") and isinstance(held, str):
            config[key] = dtype
        elif isinstance(held, dict):
            _set_dtype(cast("dict[str, Any]", held), dtype)


def json_in(folder: Path, name: str) -> dict[str, Any]:
    """The object in a file of the folder; empty where there is no such file.

    Raises EngineError where it is no JSON object.
    """
    path = folder / name
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise EngineError(f"{path} cannot be read as JSON ({error}). Restore it from the model's source.") from None
    if not isinstance(found, dict):
        raise EngineError(f"{path} holds {type(found).__name__}, not an object. Restore it from the model's source.")
    return cast("dict[str, Any]", found)


def follow_umask(folder: Path, like: str) -> None:
    """Give safetensors files, which their library makes for their owner alone, the mode of `like`, a file of ours."""
    mode = (folder / like).stat().st_mode & 0o777
    for path in folder.glob("*.safetensors"):
        os.chmod(path, mode)
