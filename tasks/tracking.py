"""The tracker as the training process sees it: a follower process that it starts, and waits for briefly at the end.

`metrics.jsonl` is written first and is the record; MLflow is a copy, made by another process. So a tracking server can
be slow, full, refused or gone: training does not notice, and the next start catches up.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from papo.errors import Interrupted
from papo.loopback import bypass_proxy
from schemas.config import TrackingConfig
from tasks.run import Run
from tasks.tracking_status import TrackingStatus, read_status, write_status

FINISH_SECONDS = 75.0
"""A last bound on the wait; the follower bounds itself, by seconds where nothing comes from the server."""
LOG = "logs/tracking.log"
KEPT_VARIABLES = (
    "PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "TMPDIR", "LD_LIBRARY_PATH",
    "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy",
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
)  # fmt: skip
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "1",
    "GIT_PYTHON_REFRESH": "quiet",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
}


@dataclass
class Follower:
    """A run's follower process; none where tracking is off."""

    run_dir: Path
    uri: str | None
    process: "subprocess.Popen[bytes] | None"

    def finish(self, timeout: float = FINISH_SECONDS, *, status: str = "FINISHED") -> TrackingStatus:
        """Say that the run has ended (MLflow's status), wait for the rest to be copied, tell how far the copy is."""
        if self.process is None:
            return TrackingStatus(state="off")
        fault = self._end(timeout, status)
        found = read_status(self.run_dir) or TrackingStatus(state="degraded", uri=self.uri)
        if fault is not None:
            found.state, found.reason = "degraded", f"{fault}; see {LOG}"
            write_status(self.run_dir, found)
        return found

    def _end(self, timeout: float, status: str) -> str | None:
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            with self.process.stdin as pipe:
                pipe.write(f"finish {status}\n".encode())
        except OSError:
            pass
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"the follower did not end within {timeout:.0f} s"
        return f"the follower ended with {code}" if code else None

    @property
    def ui(self) -> str | None:
        """What to do to look at the numbers."""
        if self.uri is None:
            return None
        if self.uri.startswith("sqlite:"):
            return shlex.join([str(Path(sys.executable).parent / "mlflow"), "ui", "--backend-store-uri", self.uri])
        return f"open {self.uri}"

    def message(self, status: TrackingStatus) -> str:
        """One line for the user, at the end of a run."""
        if status.state == "off":
            return "MLflow: off. The numbers are in metrics.jsonl."
        if status.state == "ok":
            return f"MLflow: {status.run_url or self.ui}"
        return (
            f"MLflow is {status.behind} lines behind ({status.reason}). Nothing is lost: the numbers are in "
            "metrics.jsonl, and the run's next start copies them."
        )


def start_follower(run_dir: Path, tracking: TrackingConfig, runs: Path) -> Follower:
    """Start copying the journal of `run_dir`; `auto` is a database in `runs`, which all its runs share."""
    if tracking.mlflow == "off":
        write_status(run_dir, TrackingStatus(state="off"))
        return Follower(run_dir, None, None)
    uri, artifacts = tracking.mlflow, None
    if tracking.mlflow == "auto":
        uri = f"sqlite:///{runs.resolve() / 'mlflow.db'}"
        artifacts = (runs.resolve() / "mlartifacts").as_uri()
    command = [sys.executable, "-P", "-m", "tasks.mlflow_follower", str(run_dir), "--uri", uri]
    command += ["--experiment", tracking.experiment, *(["--artifacts", artifacts] if artifacts else [])]
    (run_dir / LOG).parent.mkdir(parents=True, exist_ok=True)
    with (run_dir / LOG).open("ab") as log:
        process = subprocess.Popen(
            command, env=follower_environment(), stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    return Follower(run_dir, uri, process)


def follower_environment() -> dict[str, str]:
    """What the follower sees of this process's environment: no more than it needs."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    mlflow = {name: setting for name, setting in os.environ.items() if name.startswith("MLFLOW_")}
    settings = {**SETTINGS, **kept, **bypass_proxy(os.environ), **mlflow}
    return {**settings, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}


@contextmanager
def tracked(run: Run) -> Generator[Follower]:
    """Follow an open run while the body advances it, and say at the end where its numbers are."""
    run_dir = Path(run.disk.local("."))
    follower = start_follower(run_dir, run.configs(len(run.commits)).tracking, run_dir.parent)
    status = "FAILED"
    try:
        yield follower
        status = "FINISHED"
    except (KeyboardInterrupt, Interrupted):
        status = "KILLED"
        raise
    finally:
        run.reporter.message(follower.message(follower.finish(status=status)))
