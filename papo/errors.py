"""Everything that papo raises on purpose.

    PapoError
    ├── ConfigError          exit 2   the run config is wrong: all faults of the file at once
    ├── DataError            exit 2   a data set or a frame is wrong, or changed under a run
    ├── StoreError           exit 1   what is on disk is not what was written
    │   ├── Damaged                   a file's bytes are not those that were published
    │   ├── LedgerMismatch            the chain of commits or rows does not hold
    │   └── Fenced                    another writer has taken over this run
    ├── RunLocked            exit 3   another process advances this run
    ├── DiskFull             exit 3   no space; everything published so far is safe
    ├── EngineError          exit 1   the learner or generator failed
    │   ├── EngineDied                its process is gone (killed, out of memory, never started)
    │   │   └── EngineStalled  exit 3   it did nothing for longer than a stage may, and was ended
    │   ├── GeneratorDied             no server of a generator of its own is left; the learner is not affected
    │   └── NonFinite                 the update has no finite loss or gradient
    ├── RewardFailed         exit 1   the outcome reward failed on too many rollouts to go on
    ├── JudgeAway            exit 3   an LLM judge stayed away longer than the run may wait for it
    ├── InexactReplay        exit 1   a replayed update did not give the recorded weights
    └── Interrupted          exit 3   stopped by a signal; the next start goes on from here

A failed rollout is data (a null reward with a status); only a failed stage is an exception.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """A command that helps. The command line writes it, for it alone knows how it was called and by which options."""

    text: str
    """What it does, as the start of a line."""
    command: str
    """Its name: resume, data check, …"""
    arguments: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    """Options of its own with their values: ("--amend", "sampling.temperature=0.7")."""


class PapoError(Exception):
    """Base of all errors raised on purpose; `exit_code` is the command's."""

    exit_code: int = 1

    def __init__(self, *arguments: object, ways_out: Sequence[WayOut] = ()) -> None:
        super().__init__(*arguments)
        self.ways_out = tuple(ways_out)


class ConfigError(PapoError):
    exit_code = 2


class DataError(PapoError):
    exit_code = 2


class StoreError(PapoError):
    pass


class Damaged(StoreError):
    pass


class LedgerMismatch(StoreError):
    pass


class Fenced(StoreError):
    exit_code = 3


class RunLocked(PapoError):
    exit_code = 3


class DiskFull(PapoError):
    exit_code = 3


class EngineError(PapoError):
    pass


class EngineDied(EngineError):
    pass


class EngineStalled(EngineDied):
    exit_code = 3


class OutOfMemory(EngineDied):
    """The engine ended because memory ran out; at its next start it takes fewer rows at once."""


class GeneratorDied(EngineError):
    pass


class NonFinite(EngineError):
    pass


class RewardFailed(PapoError):
    pass


class JudgeAway(PapoError):
    exit_code = 3


class InexactReplay(PapoError):
    pass


class Interrupted(PapoError):
    exit_code = 3
