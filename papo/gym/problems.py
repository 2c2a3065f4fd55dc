"""Making problems of reasoning-gym: in a child process, so that they are the same whatever has been imported here."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, Literal

from papo.verifiers.pool import FIXED

INSTALL = "pip install -e '.[reasoning-gym]'"
SECONDS = 3600.0
"""For making all problems of a source."""
_ROOT = str(Path(__file__).resolve().parents[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class GymProblem:
    prompt: str
    reference_answer: str


@cache
def installed() -> str | None:
    """The library's version; None where it is not installed."""
    try:
        return installed_version("reasoning-gym")
    except PackageNotFoundError:
        return None


def make_problems(
    task: str, settings: dict[str, Any], *, seed: int, count: int, split: Literal["train", "heldout"]
) -> list[GymProblem]:
    """`count` different problems, a function of the arguments and the library's version.

    The two splits share no question, whatever their seeds. Raises ValueError where the library is missing, has no such
    task or setting, or does not give so many.
    """
    if installed() is None:
        raise ValueError(f"the package reasoning-gym is not installed: {INSTALL}.")
    request = {"task": task, "settings": settings, "seed": seed, "count": count, "split": split}
    path = os.pathsep.join(filter(None, (_ROOT, os.environ.get("PYTHONPATH"))))
    try:
        made = subprocess.run(
            [sys.executable, "-m", "papo.gym.maker"],
            input=json.dumps(request).encode() + b"\n",
            capture_output=True,
            check=False,
            timeout=SECONDS,
            env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": path, **FIXED},
        )
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"{count} problems of {task} were not made within {SECONDS:g} s: use a smaller count or easier settings."
        ) from None
    lines = [json.loads(line) for line in made.stdout.splitlines()]
    fault = next((line["fault"] for line in lines if "fault" in line), None)
    if fault is None and (made.returncode or len(lines) < count):
        said = made.stderr.decode(errors="replace")[-300:]
        fault = f"the program that makes them ended with {made.returncode}: {said}"
    if fault is not None:
        raise ValueError(f"problems of {task} cannot be made: {fault}.")
    return [GymProblem(**line) for line in lines]
