"""The processes of one engine host: started in sessions of their own, heard over sockets, ended with their owner."""

import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from papo.engines.messages import Channel, Message
from papo.engines.reaping import kill_session, reap, write_pid_file
from papo.engines.settings import EngineSettings
from papo.engines.silence import POLL_SECONDS, Silence, states_of
from papo.errors import EngineDied, EngineStalled

KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "TMPDIR", "LD_LIBRARY_PATH", "HF_HOME")
KEPT_PREFIXES = ("CUDA_", "NVIDIA_", "NCCL_", "GLOO_", "TORCH_")
LOG_LINES = 15
"""Lines of the ranks' log that are quoted when a rank dies."""


class RankGroup:
    """1..N rank processes and the sockets to them. Whatever goes wrong, the whole group goes."""

    def __init__(self, settings: EngineSettings, *, log: Path, pid_file: Path | None) -> None:
        if pid_file is not None:
            reap(pid_file)
        self._owner = os.getpid()
        self._log = log
        self._pid_file = pid_file
        log.parent.mkdir(parents=True, exist_ok=True)
        self._channels: list[Channel] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        life_end, self._life = os.pipe()
        try:
            port = str(free_port()) if settings.ranks > 1 else "0"
            for rank in range(settings.ranks):
                self._spawn(rank_environment(settings, rank=rank, port=port, scratch=log.parent), life_end)
            if pid_file is not None:
                write_pid_file(pid_file, [process.pid for process in self._processes])
        except BaseException:
            self.kill()
            raise
        finally:
            os.close(life_end)

    def send(self, message: Message) -> None:
        """Tell every rank; raises EngineDied when one of them no longer listens."""
        for rank, channel in enumerate(self._channels):
            try:
                channel.send(message)
            except OSError:
                raise self._death(rank) from None

    def next_message(self, *, silence_seconds: float, deadline: float | None = None) -> tuple[int, Message]:
        """The next (rank, message). Raises EngineDied when a rank dies, or at `deadline` (monotonic seconds), and
        EngineStalled after `silence_seconds` in which no rank said or did anything."""
        rank = next((rank for rank, channel in enumerate(self._channels) if channel.has_message), None)
        if rank is None:
            rank = self._wait_for_data(deadline, silence_seconds)
        try:
            message = self._channels[rank].receive()
        except OSError:
            message = None
        if message is None:
            raise self._death(rank)
        return rank, message

    def kill(self) -> None:
        """End every rank now, and wait until it is gone. Safe to call twice."""
        if os.getpid() != self._owner:
            # A forked child of the owner inherits this object, but not the right to end the group.
            return
        for process in self._processes:
            if process.returncode is None:
                kill_session(process.pid)
                process.wait()
        for channel in self._channels:
            channel.close()
        self._channels = []
        if self._life >= 0:
            os.close(self._life)
            self._life = -1
        if self._pid_file is not None:
            self._pid_file.unlink(missing_ok=True)

    def wait(self, seconds: float) -> None:
        """Give the ranks `seconds` to end by themselves."""
        deadline = time.monotonic() + seconds
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(process.pid for process in self._processes)

    def _spawn(self, environment: dict[str, str], life_end: int) -> None:
        ours, theirs = socket.socketpair()
        self._channels.append(Channel(ours))
        # The kernel sends the death signal when the *thread* that started the child ends, so a child of a thread
        # that is not the main one must rely on the life pipe alone.
        bound = "1" if threading.current_thread() is threading.main_thread() else "0"
        with theirs, self._log.open("ab") as log:
            arguments = [str(theirs.fileno()), str(life_end), str(self._owner), bound]
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "papo.engines.rank", *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(), life_end),
                start_new_session=True,
            )
        self._processes.append(process)

    def _wait_for_data(self, deadline: float | None, silence_seconds: float) -> int:
        poll_seconds, silence = min(POLL_SECONDS, silence_seconds / 10), None
        with selectors.DefaultSelector() as selector:
            for rank, channel in enumerate(self._channels):
                selector.register(channel, selectors.EVENT_READ, rank)
            while True:
                left = poll_seconds if deadline is None else deadline - time.monotonic()
                ready = selector.select(max(0.0, min(left, poll_seconds)))
                if ready:
                    return ready[0][0].data
                if deadline is not None and time.monotonic() >= deadline:
                    self.kill()
                    raise EngineDied(f"the engine did not answer in time and was ended.\n{self._log_tail()}")
                # Only now: most messages come at once, and a look at the processes costs milliseconds.
                silence = silence or Silence(self.pids, poll_seconds=poll_seconds)
                if silence.look() >= silence_seconds:
                    raise self._stall(silence_seconds)

    def _stall(self, seconds: float) -> EngineStalled:
        states = states_of(self.pids)
        self.kill()
        return EngineStalled(
            f"for {seconds:.0f} s the engine gave no sign of progress and took no processor time ({states}), so it was "
            f"ended.\n{self._log_tail()}"
        )

    def _death(self, rank: int) -> EngineDied:
        process = self._processes[rank]
        try:
            code = process.wait(5)
        except subprocess.TimeoutExpired:
            code = None
        self.kill()
        return EngineDied(f"rank {rank} of the engine {_ending(code)}; the engine is stopped.\n{self._log_tail()}")

    def _log_tail(self) -> str:
        try:
            lines = self._log.read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        return "\n".join([f"Last lines of {self._log}:", *(f"  {line}" for line in lines[-LOG_LINES:])])


def kept_environment() -> dict[str, str]:
    """What a child may see of this process's environment."""
    return {
        name: value for name, value in os.environ.items() if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)
    }


def rank_environment(settings: EngineSettings, *, rank: int, port: str, scratch: Path) -> dict[str, str]:
    """The whole environment of one rank: a short list of what it needs, so that no secret of the owner reaches it."""
    source = str(Path(__file__).resolve().parents[2])
    cpu = {"DS_ACCELERATOR": "cpu"} if settings.device == "cpu" or not has_gpu() else {}
    return (
        kept_environment()
        | cpu
        | {
            "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")])),
            "PYTHONUNBUFFERED": "1",
            "PYTHONHASHSEED": "0",
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(settings.ranks),
            "LOCAL_WORLD_SIZE": str(settings.ranks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "OMP_NUM_THREADS": str(settings.threads),
            "MKL_NUM_THREADS": str(settings.threads),
            "OMP_WAIT_POLICY": "PASSIVE",
            "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "DO_NOT_TRACK": "1",
            # What cuBLAS asks for when deterministic results are wanted.
            "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
            # A folder of our own: a lock that a killed compilation left in the user's common one cannot stop us.
            "TORCH_EXTENSIONS_DIR": str((scratch / "torch_extensions").resolve()),
        }
    )


def has_gpu() -> bool:
    """Whether an NVIDIA driver is loaded, told without importing torch."""
    return Path("/proc/driver/nvidia/version").exists()


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ending(code: int | None) -> str:
    if code is None:
        return "closed its socket but did not end"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
