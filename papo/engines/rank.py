"""One rank: reads commands from its socket, runs them in turn, answers. Started by `papo.engines.group` only.

    python -m papo.engines.rank SOCKET_FD LIFE_FD OWNER_PID BOUND

A rank dies with its owner in two ways: by the kernel's parent-death signal, and by a thread that waits for the end of
a pipe that only the owner holds open.
"""

import ctypes
import os
import signal
import socket
import sys
import threading
import traceback
from typing import Any

from papo import errors
from papo.engines.messages import VERBS, Answer, Channel, Command, Failure, Tick, from_json, to_json
from papo.engines.out_of_memory import ran_out
from papo.engines.settings import EngineSettings
from papo.errors import EngineError, OutOfMemory, PapoError

PR_SET_PDEATHSIG = 1
IN_MICRO_BATCHES = ("update", "sft", "logprobs", "values", "train_prm", "score_texts")
"""Verbs that need less memory with fewer rows in a micro-batch."""


def main(arguments: list[str]) -> None:
    """Serve commands until `close`, or until the owner is gone."""
    channel_fd, life_fd, owner, bound = map(int, arguments)
    if bound:
        _die_with(owner)
    threading.Thread(target=_watch, args=(life_fd,), daemon=True).start()
    # The owner decides when a run is interrupted; a stray Ctrl-C must not tear an update.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _serve(Channel(socket.socket(fileno=channel_fd)))
    # Not sys.exit: what torch and gloo do at interpreter exit can wait for other ranks for ever.
    sys.stdout.flush()
    os._exit(0)


def _serve(channel: Channel) -> None:
    worker: Any = None
    main_rank = os.environ["RANK"] == "0"
    while isinstance(command := channel.receive(), Command) and command.verb != "close":
        request_type, answer_type = VERBS[command.verb]
        try:
            request = from_json(request_type, command.request)
            if command.verb == "setup":
                worker = _worker(request, channel)
                value = worker.environment()
            else:
                value = getattr(worker, command.verb)(request)
            reply = Answer(value=to_json(answer_type, value) if main_rank else None)
        except Exception as error:
            traceback.print_exc()
            reply = _failure(command.verb, error)
        channel.send(reply)


def _worker(settings: EngineSettings, channel: Channel) -> Any:
    # torch is imported here, after the death signal is set: it takes seconds, in which the owner may die.
    from papo.engines.worker import Worker  # noqa: PLC0415

    rank = int(os.environ["RANK"])

    def tick(done: int, total: int) -> None:
        if rank == 0:
            channel.send(Tick(done=done, total=total))

    return Worker(settings, rank=rank, tick=tick)


def _failure(verb: str, error: Exception) -> Failure:
    if isinstance(error, PapoError) and hasattr(errors, type(error).__name__):
        return Failure(error=type(error).__name__, message=str(error))
    spent = ran_out(error) and verb in IN_MICRO_BATCHES
    kind = OutOfMemory if spent else EngineError
    return Failure(error=kind.__name__, message=f"{verb} failed with {type(error).__name__}: {error}")


def _die_with(owner: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != owner:
        # The owner died before the signal was set.
        os._exit(1)


def _watch(life_fd: int) -> None:
    os.read(life_fd, 1)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
