"""The commands that papo proposes, spelled so that they work when they are pasted.

No other module writes a command down: each names what it wants typed, and the caller's own options (where runs and
models are, the fields that were set, whether Prefect is left out) and the shell's quoting are added here.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from papo.errors import PapoError, WayOut
from schemas.runids import checked_run_id


@dataclass(frozen=True)
class Places:
    """Where runs and models are kept; by default below the working folder."""

    runs: Path = Path("runs")
    models: Path = Path("models")

    def run(self, run_id: str) -> Path:
        """The folder of a run. Raises ConfigError where `run_id` is none."""
        return self.runs / checked_run_id(run_id)

    def resolved(self) -> "Places":
        """The same, from anywhere."""
        return Places(runs=self.runs.resolve(), models=self.models.resolve())


USUAL = Places()
CARRIED = {
    "train": ("--set", "--direct", "--runs", "--models"),
    "resume": ("--direct", "--runs", "--models"),
    "status": ("--runs",),
    "samples": ("--runs",),
    "ls": ("--runs",),
    "up": ("--runs",),
    "export": ("--runs", "--models"),
    "try": ("--set", "--models"),
    "validate": ("--set",),
    "sft": ("--set", "--models"),
    "data check": ("--set",),
    "data prepare": ("--set",),
    "engines install-vllm": (),
}
"""The options that a command takes over from the one that proposes it. A run has its `--set` in its record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """Commands as this caller would type them."""

    places: Places = USUAL
    overrides: tuple[str, ...] = ()
    direct: bool = False

    def __call__(self, command: str, *arguments: str | Path, options: Sequence[tuple[str, str]] = ()) -> str:
        """A whole command line. `options`: the command's own, an empty value for a switch."""
        words = [*program(), *command.split()]
        placed = [str(argument) for argument in arguments]
        given = [word for option in [*options, *self._carried(command)] for word in option if word]
        # What begins with a dash is no option, but click has to be told so.
        if any(word.startswith("-") for word in placed):
            return shlex.join([*words, *given, "--", *placed])
        return shlex.join([*words, *placed, *given])

    def _carried(self, command: str) -> Iterator[tuple[str, str]]:
        for name in CARRIED[command]:
            match name:
                case "--set":
                    yield from (("--set", text) for text in self.overrides)
                case "--direct" if self.direct:
                    yield "--direct", ""
                case "--runs" if self.places.runs != USUAL.runs:
                    yield "--runs", str(self.places.runs)
                case "--models" if self.places.models != USUAL.models:
                    yield "--models", str(self.places.models)
                case _:
                    pass


PLAIN = Proposals()
"""Commands without any option of the caller's."""


def rendered(error: PapoError, proposals: Proposals) -> Iterator[str]:
    """The ways out of an error, a line each."""
    return (written(way_out, proposals) for way_out in error.ways_out)


def written(way_out: WayOut, proposals: Proposals) -> str:
    """One way out, with its command line."""
    return f"{way_out.text}: {proposals(way_out.command, *way_out.arguments, options=way_out.options)}"


def program() -> tuple[str, ...]:
    """How papo was called, so that a proposed command finds it where it is not on the PATH."""
    called = sys.argv[0] if sys.argv else ""
    if Path(called).name != "papo":
        return ("papo",)
    found = shutil.which("papo")
    is_found = found is not None and os.path.exists(called) and os.path.samefile(found, called)
    return ("papo",) if is_found or os.sep not in called else (called,)
