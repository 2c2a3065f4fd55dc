"""What a sandboxed program may use, and what is known of it when it has ended."""

from dataclasses import dataclass
from math import isfinite
from typing import Literal

from papo.errors import PapoError

Ending = Literal["exit", "signal", "cpu", "wall", "busy", "memory", "processes", "files", "output", "stopped"]
Isolation = Literal["bubblewrap", "namespaces", "none"]


class SandboxError(PapoError):
    """This host cannot isolate programs, or a sandbox could not be set up: no fact about the program."""

    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of a whole process tree, not of one process."""

    cpu_seconds: float = 10.0
    wall_seconds: float = 30.0
    memory_bytes: int = 512 * 2**20
    processes: int = 24
    """Processes and threads at once."""
    disk_bytes: int = 64 * 2**20
    """Of the working folder, which is memory."""
    output_bytes: int = 8 * 2**20
    """Of standard output, and of all replies together; of standard error the first 64 KiB are kept."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            found = getattr(self, name)
            if not (isfinite(found) and found > 0):
                raise ValueError(f"{name} is {found}: use a positive number.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a program ended. Output, exit code and files prove nothing about it being right."""

    ending: Ending
    """exit, signal: by itself. cpu, memory, processes, files, output, wall: over its limit. busy: the wall clock ran
    out while the program waited for a processor, which is the host's making. stopped: by the caller."""
    code: int
    """Exit code, or the signal's number; 0 where it was killed for a limit."""
    stdout: bytes
    stderr: bytes
    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    """Most resident bytes seen at once."""
    left: int
    """Processes of the tree that were still there when it ended, and were killed."""

    @property
    def finished(self) -> bool:
        """It ended by itself, without error."""
        return self.ending == "exit" and self.code == 0
