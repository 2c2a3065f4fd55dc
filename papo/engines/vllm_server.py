"""A vLLM server as a child of this process: on loopback, in an environment and a session of its own, gone with us."""

import os
import re
import subprocess
import time
import weakref
from dataclasses import dataclass
from pathlib import Path

from papo.engines.group import free_port, has_gpu, kept_environment
from papo.engines.reaping import kill_session, reap, write_pid_file
from papo.engines.vllm_client import WORKER, VllmLink
from papo.errors import GeneratorDied

SIDE = Path(__file__).parent / "vllm_side"
LOG_LINES = 12
ERROR_LINE = re.compile(r"\w+(Error|Exception): ")
POLL_SECONDS = 0.25
SERVER_SEED = 0
"""Of unseeded requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How a server is started. Nothing here changes what a seeded request answers, but `dtype`."""

    environment: str
    """Folder of vLLM's environment, made by `papo engines install-vllm`."""
    dtype: str
    max_model_len: int
    """Tokens of prompt and completion together."""
    gpu_memory_utilization: float = 0.45
    """Share of the GPU's memory, weights and cache together."""
    cache_gib: int = 1
    """Memory of the KV cache where there is no GPU."""
    threads: int = 1
    """Where there is no GPU."""
    sleeps: bool = False
    """Whether the server is to give its memory back while the policy is updated."""
    gpu: str | None = None
    """CUDA_VISIBLE_DEVICES of the server; None: as this process has it."""
    trust_remote_code: bool = False
    start_seconds: float = 600.0
    """Limit on the start."""
    worker: str = WORKER
    """Worker extension; tests plant faults through another one."""
    python_path: str = str(SIDE)


class ManagedServer:
    """Started by the constructor; it ends on `kill`, when this object is collected, and with this process."""

    def __init__(self, model: str, settings: ServerSettings, *, log: Path, pid_file: Path) -> None:
        """`model`: a Hugging Face folder. `log`: takes what the server prints. `pid_file`: where the next start finds
        a server that this process left behind. Raises ConfigError without an environment."""
        reap(pid_file)
        self._log = log
        self._pid_file = pid_file
        self._settings = settings
        self._started = time.monotonic()
        self.ready_seconds = 0.0
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        log.parent.mkdir(parents=True, exist_ok=True)
        life_end, life = os.pipe()
        command = [
            *(python_of(settings.environment), str(SIDE / "papo_vllm_guard.py"), str(life_end), str(os.getpid())),
            *server_command(model, settings, host="127.0.0.1", port=self.port),
        ]
        try:
            with log.open("ab") as output:
                self._process = subprocess.Popen(
                    command,
                    env=server_environment(settings, scratch=log.parent),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=(life_end,),
                    start_new_session=True,
                )
        except BaseException:
            os.close(life)
            raise
        finally:
            os.close(life_end)
        self._end = weakref.finalize(self, _kill, self._process, life, pid_file, os.getpid())
        write_pid_file(pid_file, [self._process.pid])

    @property
    def pid(self) -> int:
        """Of the guard, which leads the server's process group."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._end.alive and self._process.poll() is None

    def wait(self, link: VllmLink) -> None:
        """Until the server answers. Raises GeneratorDied, with the end of its log, when it dies or takes too long."""
        limit = self._settings.start_seconds
        while not link.is_up():
            late = time.monotonic() - self._started > limit
            if late or not self.is_alive:
                reason = f"was not ready after {limit:.0f} s" if late else "ended while it was starting"
                tail = self.log_tail()
                self.kill()
                raise GeneratorDied(f"the vLLM server {reason}.\n{tail}")
            time.sleep(POLL_SECONDS)
        self.ready_seconds = time.monotonic() - self._started

    def kill(self) -> None:
        """End the server and all it has started, now. Safe to call twice."""
        self._end()

    def log_tail(self) -> str:
        """The first error in its log, which those after it only pass on, and the last lines."""
        try:
            lines = [line[:300] for line in self._log.read_text(errors="replace").splitlines()]
        except OSError:
            lines = []
        first = [line for line in lines if ERROR_LINE.search(line)][:1]
        shown = [f"First error in {self._log}:", f"  {first[0]}"] if first else []
        return "\n".join([*shown, f"Last lines of {self._log}:", *(f"  {line}" for line in lines[-LOG_LINES:])])


def server_command(model: str, settings: ServerSettings, *, host: str, port: int) -> list[str]:
    """What starts a server, in vLLM's environment."""
    command = [
        *(python_of(settings.environment), "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", model, "--served-model-name", "policy", "--host", host, "--port", str(port)),
        *("--dtype", settings.dtype, "--max-model-len", str(settings.max_model_len), "--seed", str(SERVER_SEED)),
        # Raw log-probs leave the temperature out; the folder's sampling defaults must not fill anything in.
        *("--logprobs-mode", "processed_logprobs", "--generation-config", "vllm"),
        *("--worker-extension-cls", settings.worker),
        *("--disable-uvicorn-access-log",),
    ]
    if settings.trust_remote_code:
        command.append("--trust-remote-code")
    if has_gpu():
        command += ["--gpu-memory-utilization", str(settings.gpu_memory_utilization)]
        command += ["--enable-sleep-mode"] if settings.sleeps else []
    else:
        # Without a GPU there is no such mode, though the calls are answered.
        command.append("--enforce-eager")
    return command


def server_environment(settings: ServerSettings, *, scratch: Path) -> dict[str, str]:
    """The server's whole environment: a short list of what it needs, so that no secret of the owner reaches it."""
    root = Path(settings.environment).resolve()
    preload = root / "lib" / "libiomp5.so"
    environment = kept_environment() | {
        "PYTHONPATH": settings.python_path,
        "PYTHONUNBUFFERED": "1",
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CACHE_ROOT": str((scratch / "vllm_cache").resolve()),
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_CPU_KVCACHE_SPACE": str(settings.cache_gib),
        "OMP_NUM_THREADS": str(settings.threads),
        "OMP_WAIT_POLICY": "PASSIVE",
        # Bound to cores, two servers on one machine would share the first ones.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    }
    if preload.exists():
        environment["LD_PRELOAD"] = str(preload)
    if settings.gpu is not None:
        environment["CUDA_VISIBLE_DEVICES"] = settings.gpu
    return environment


def python_of(environment: str) -> str:
    """The interpreter of vLLM's environment."""
    # Not resolved: the interpreter finds its environment by the path that it is called by.
    return str(Path(environment).absolute() / "bin" / "python")


def _kill(process: "subprocess.Popen[bytes]", life: int, pid_file: Path, owner: int) -> None:
    if os.getpid() != owner:
        # A forked child inherits the object, but not the right to end the server.
        return
    if process.returncode is None:
        kill_session(process.pid)
        process.wait()
    os.close(life)
    pid_file.unlink(missing_ok=True)
