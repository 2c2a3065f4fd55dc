"""Which Prefect server a run talks to, and a managed one where there is none.

The order: PREFECT_API_URL (environment, then the active Prefect profile); the server that runs for this folder already
(of another run or of `papo up`); else a new one on a free loopback port, with its database in `<runs>/.prefect`. Never
Prefect's ephemeral mode: it outlives a killed flow.

A managed server lives as long as anybody uses it. Use is a shared flock, which the kernel frees however a user ends; a
keeper process (`flows.server_keeper`) ends the server when nobody holds it. So two runs share one database through one
server, and none stays behind.
"""

import fcntl
import json
import os
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from papo.loopback import bypass_proxy, is_loopback, unusable_proxies
from papo.printable import printable
from tasks.lock import boot_id

HOME = ".prefect"
"""Below the runs folder: Prefect's home (database, profiles) and what the managed server is known by."""
STATE = "server.json"
USERS = "users.lock"
STARTING = "starting.lock"
LOG = "server.log"
START_SECONDS = 180.0
"""How long a managed server may take to answer: seconds where it is alone, minutes on a busy machine."""
GIVEN_SECONDS = 15.0
"""How long the server of PREFECT_API_URL may take to answer before the run goes on without it."""
UI_PORT = 4200
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
SERVER_SETTINGS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": "P7D",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
    # sqlite on a busy disk: wait for its lock rather than answer 503.
    "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
    "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "60",
}
CLIENT_SETTINGS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    # The terminal belongs to the run; Prefect says the same things in its UI.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_HANDLERS_DEBUG_LEVEL": "CRITICAL",
    "PREFECT_API_REQUEST_TIMEOUT": "20",
    "PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE": "10000",
}


@dataclass(frozen=True)
class ServerInfo:
    """Where the run is shown."""

    kind: Literal["given", "managed", "none"]
    url: str | None
    """Of the API; None: this run goes without Prefect."""
    reason: str | None = None
    """Why there is none."""

    @property
    def ui(self) -> str | None:
        return self.url.removesuffix("/api") if self.url else None

    @property
    def message(self) -> str:
        """One line for the user."""
        if self.url is None:
            return f"No Prefect for this run: {self.reason} Nothing is lost: the run directory is the record."
        later = " (while runs are going)" if self.kind == "managed" else ""
        return f"Prefect UI: {self.ui}{later}"


@contextmanager
def server(runs: Path, *, port: int = 0, start_seconds: float = START_SECONDS) -> Generator[ServerInfo]:
    """Find or start the server, and name it in this process's environment. Enter before `prefect` is imported.

    A server that cannot be had is no error: `url` is None then, and `reason` says why. Whatever proxy the environment
    names, servers of this machine are asked without it.
    """
    with _environment(bypass_proxy(os.environ)), _found(runs, port, start_seconds) as found:
        yield found


@contextmanager
def _found(runs: Path, port: int, start_seconds: float) -> Generator[ServerInfo]:
    given = given_url()
    if given is not None:
        found = _given(given)
        with _client_environment(found, {"PREFECT_API_URL": given}):
            yield found
        return
    home = (runs / HOME).resolve()
    home.mkdir(parents=True, exist_ok=True)
    use = os.open(home / USERS, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        found = _managed(home, use, port, start_seconds)
        with _client_environment(found, {"PREFECT_API_URL": found.url or "", "PREFECT_HOME": str(home)}):
            yield found
    finally:
        os.close(use)


def up(runs: Path, *, out: TextIO = sys.stdout) -> int:
    """Keep the server of this folder running until Ctrl-C, so that finished runs can be looked at. The exit code."""
    with server(runs, port=UI_PORT) as found:
        if found.url is None or found.kind == "given":
            print(printable(found.message), file=out, flush=True)
            return int(found.url is None)
        print(printable(f"Prefect UI: {found.ui} — Ctrl-C ends it (runs that use it keep it)."), file=out, flush=True)
        try:
            while _answers(found.url):
                time.sleep(5.0)
        except KeyboardInterrupt:
            return 0
    print(printable(f"The server is gone. Its log: {runs / HOME / LOG}"), file=out, flush=True)
    return 1


def given_url() -> str | None:
    """PREFECT_API_URL as the user set it: in the environment, or in the active profile of `prefect config`."""
    if url := os.environ.get("PREFECT_API_URL"):
        return url
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    try:
        profiles = tomllib.loads((home / "profiles.toml").read_text())
        name = os.environ.get("PREFECT_PROFILE", profiles["active"])
        return profiles["profiles"][name].get("PREFECT_API_URL")
    except (OSError, ValueError, KeyError):
        return None


def _given(url: str) -> ServerInfo:
    deadline = time.monotonic() + GIVEN_SECONDS
    while not _answers(url, ours=False):
        if time.monotonic() > deadline:
            reason = (
                f"the server of PREFECT_API_URL ({url}) did not answer within {GIVEN_SECONDS:.0f} s. Start it, or "
                "unset PREFECT_API_URL to get a managed one."
            )
            return ServerInfo(kind="none", url=None, reason=reason)
        time.sleep(0.5)
    return ServerInfo(kind="given", url=url)


def _managed(home: Path, use: int, port: int, start_seconds: float) -> ServerInfo:
    """The server of this folder, started if need be. One process at a time looks and starts."""
    deadline = time.monotonic() + start_seconds
    starting = os.open(home / STARTING, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not (_lock(starting, fcntl.LOCK_EX, deadline) and _lock(use, fcntl.LOCK_SH, deadline)):
            return ServerInfo(kind="none", url=None, reason=f"another start of the server has not ended ({home}).")
        known = _known(home)
        if known is not None and _answers(known):
            return ServerInfo(kind="managed", url=known)
        return _start(home, port, deadline, start_seconds)
    finally:
        os.close(starting)


def _start(home: Path, port: int, deadline: float, start_seconds: float) -> ServerInfo:
    port = _free_port(port)
    url = f"http://127.0.0.1:{port}/api"
    log = home / LOG
    with log.open("wb") as stream:
        keeper = subprocess.Popen(
            [sys.executable, "-P", "-m", "flows.server_keeper", str(home), str(port)],
            env={**server_environment(home), "PYTHONPATH": str(Path(__file__).resolve().parents[1])},
            cwd=home, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    while time.monotonic() < deadline:
        if keeper.poll() is not None:
            return ServerInfo(kind="none", url=None, reason=f"it ended at its start; see {log}.")
        if _answers(url):
            (home / STATE).write_text(json.dumps({"url": url, "pid": keeper.pid, "boot_id": boot_id()}))
            return ServerInfo(kind="managed", url=url)
        time.sleep(0.2)
    keeper.terminate()
    reason = f"the managed server did not answer within {start_seconds:.0f} s (busy machine?); see {log}."
    return ServerInfo(kind="none", url=None, reason=reason)


def server_environment(home: Path) -> dict[str, str]:
    """What a managed server sees of this process's environment."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return {**kept, **SERVER_SETTINGS, "PREFECT_HOME": str(home)}


def _known(home: Path) -> str | None:
    """The address that a server was last started at, in this boot."""
    try:
        state = json.loads((home / STATE).read_text())
        return state["url"] if state["boot_id"] == boot_id() else None
    except (OSError, ValueError, KeyError):
        return None


def _answers(url: str, *, ours: bool = True) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as response:
            return not ours or response.read().strip() == b"true"
    except urllib.error.HTTPError as error:
        # Not one of ours, but somebody: a server that wants credentials, or a cloud address without this path.
        return not ours and error.code < 500
    except (OSError, ValueError):
        return False


def _free_port(wanted: int) -> int:
    """`wanted` if it is free, else any; 0: any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _lock(descriptor: int, kind: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)


def _client_environment(found: ServerInfo, named: dict[str, str]) -> AbstractContextManager[None]:
    """What Prefect's client in this process is to read: papo's settings, unless the user has set them, and `named`."""
    defaults = {name: setting for name, setting in CLIENT_SETTINGS.items() if name not in os.environ}
    if found.url is None:
        return _environment(defaults)
    unusable = unusable_proxies(os.environ) if is_loopback(found.url) else []
    return _environment({**defaults, **named, **dict.fromkeys(unusable)})


@contextmanager
def _environment(wanted: Mapping[str, str | None]) -> Generator[None]:
    """Set variables (None: unset) of this process until the end."""
    before = {name: os.environ.get(name) for name in wanted}
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, setting in variables.items():
        if setting is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = setting
