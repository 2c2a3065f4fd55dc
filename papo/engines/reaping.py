"""Who the ranks of a host are, written down so that the next start can end a group whose owner died without ending it.

A process is known by pid, boot and start time together: a pid alone is handed to strangers after a while.
"""

import json
import os
import signal
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGroup:
    """What a pid file holds. Start times are in clock ticks after boot, as field 22 of /proc/<pid>/stat has them."""

    boot_id: str
    pids: list[int]
    start_times: list[int]
    place: str | None = None
    """The folder that the file was written in: in a copy of that folder the file is of somebody else's processes."""


def write_pid_file(path: Path, pids: list[int]) -> None:
    """Record the processes, each the leader of its own session, in one atomic step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    group = RecordedGroup(
        boot_id=_boot_id(), pids=pids, start_times=[start_time(pid) or 0 for pid in pids], place=_place(path)
    )
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(asdict(group)))
    temporary.replace(path)


def reap(path: Path) -> list[int]:
    """Kill what a pid file records and is still the same process; return the pids that were killed.

    A file that is missing, torn, from another boot or copied from another folder records nobody.
    """
    try:
        group = RecordedGroup(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return []
    if group.boot_id != _boot_id() or group.place not in (None, _place(path)):
        return []
    same = [pid for pid, started in zip(group.pids, group.start_times, strict=True) if start_time(pid) == started]
    for pid in same:
        kill_session(pid)
    path.unlink(missing_ok=True)
    return same


def kill_session(pid: int) -> None:
    """SIGKILL to the process group that `pid` leads; nothing happens when it is gone."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def start_time(pid: int) -> int | None:
    """Clock ticks between boot and the start of `pid`; None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command name stands in brackets and may itself hold blanks and brackets: count from the last one.
    return int(stat[stat.rindex(")") + 2 :].split()[19])


def _place(path: Path) -> str:
    """Stays the same when the folder is renamed, and is another one for a copy of it."""
    folder = path.parent.stat()
    return f"{folder.st_dev}:{folder.st_ino}"


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
