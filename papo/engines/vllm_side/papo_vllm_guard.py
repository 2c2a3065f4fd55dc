"""Runs a vLLM server for as long as its owner lives: `python papo_vllm_guard.py LIFE_FD OWNER_PID COMMAND...`

The guard leads the session. vLLM starts processes of its own, so when the owner is gone (end-of-file on a pipe that
only it holds open) or the server has ended, the whole process group is killed, not the server alone.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Start the command, wait for its end or the owner's, leave nothing behind."""
    life_fd, owner = int(arguments[0]), int(arguments[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.getppid() != owner:
        _end()
    # The server itself goes with the guard, should somebody kill that one alone.
    libc = ctypes.CDLL(None, use_errno=True)
    server = subprocess.Popen(
        arguments[2:],
        preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),  # noqa: PLW1509  # no thread runs yet
    )
    threading.Thread(target=_watch, args=(life_fd,), daemon=True).start()
    code = server.wait()
    sys.stdout.write(f"guard: the server ended with exit code {code}\n")
    sys.stdout.flush()
    _end()


def _watch(life_fd: int) -> None:
    os.read(life_fd, 1)
    _end()


def _end() -> None:
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
