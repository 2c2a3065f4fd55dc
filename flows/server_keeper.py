"""Keeps one managed Prefect server until nobody uses it. Started by `flows.server` only.

    python -m flows.server_keeper HOME PORT

Users hold a shared flock on HOME/users.lock; having it exclusively means that there are none left. The server dies with
this process too: by the kernel's parent-death signal.
"""

import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.5
END_SECONDS = 5.0


def main(arguments: list[str]) -> int:
    """Start the server, wait until it ends or is no longer used, leave nothing running."""
    home, port = Path(arguments[0]), arguments[1]
    signal.signal(signal.SIGTERM, _stop)
    users = os.open(home / "users.lock", os.O_RDWR | os.O_CREAT, 0o644)
    server = subprocess.Popen(
        [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", port],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_die_with_parent,  # noqa: PLW1509 - this process has one thread
    )
    try:
        while server.poll() is None and not _unused(users):
            time.sleep(POLL_SECONDS)
        return server.returncode or 0
    finally:
        (home / "server.json").unlink(missing_ok=True)
        _end(server)


def _unused(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end(server: "subprocess.Popen[bytes]") -> None:
    for kind in (signal.SIGTERM, signal.SIGKILL):
        if server.poll() is None:
            os.killpg(server.pid, kind)
            try:
                server.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                continue


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _die_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
