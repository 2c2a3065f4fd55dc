"""One real Prefect server for all tests of a session, and training processes to run against it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.server import server
from tasks.tracking_status import TrackingStatus, read_status

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0
"""Bounds a wait, on a machine that does much else too; nothing is asserted about how long anything takes."""


@dataclass
class Ended:
    code: int
    report: dict[str, Any]
    said: str


class Training:
    """A driver process."""

    def __init__(self, runs: Path, run_id: str, *arguments: str, **environment: str) -> None:
        self.folder = runs / run_id
        runs.mkdir(parents=True, exist_ok=True)
        # Away from the repository: Prefect also reads settings from the pyproject.toml of the working folder.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.orchestration.driver", str(runs), run_id, *arguments],
            cwd=runs, env={**os.environ, "PYTHONPATH": str(ROOT), **environment}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def wait_for(self, pattern: str) -> None:
        """Until the run directory has such a file."""
        eventually(lambda: any(self.folder.glob(pattern)) or self._process.poll() is not None)
        assert self._process.poll() is None, self._process.communicate()[1]

    def signal(self, kind: signal.Signals) -> None:
        self._process.send_signal(kind)

    def end(self) -> Ended:
        out, said = self._process.communicate(timeout=PATIENCE)
        lines = out.strip().splitlines()
        return Ended(self._process.returncode, json.loads(lines[-1]) if lines else {}, said)

    @property
    def ledger(self) -> bytes:
        return (self.folder / "ledger.jsonl").read_bytes()

    @property
    def policy(self) -> list[str]:
        """Policy hash of each commit."""
        commits = sorted((self.folder / "iterations").glob("*/commit.json"))
        return [json.loads(path.read_text())["state"]["policy"]["fingerprint"]["policy_sha256"] for path in commits]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "events.jsonl").read_text().splitlines() if line.strip()]

    @property
    def flow_runs(self) -> list[str]:
        return [event["flow_run_id"] for event in self.events if event["event"] == "flow_run"]

    @property
    def tracking(self) -> TrackingStatus:
        status = read_status(self.folder)
        assert status is not None
        return status


def eventually(holds: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """The first truth that `holds` returns."""
    deadline = time.monotonic() + patience
    while not (found := holds()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.1)
    return found


class Api:
    """The server as its UI sees it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def flow_run(self, flow_run_id: str) -> dict[str, Any]:
        return httpx.get(f"{self.url}/flow_runs/{flow_run_id}", timeout=30).json()

    def state_is(self, flow_run_id: str, kind: str) -> bool:
        return eventually(lambda: self.flow_run(flow_run_id)["state"]["type"] == kind)

    def states(self, flow_run_id: str) -> list[str]:
        """The names of all states that it has had, in order."""
        found = httpx.get(f"{self.url}/flow_run_states/", params={"flow_run_id": flow_run_id}, timeout=30).json()
        return [state["name"] for state in sorted(found, key=lambda state: state["timestamp"])]

    def tasks(self, flow_run_id: str) -> list[str]:
        of_run = {"flow_runs": {"id": {"any_": [flow_run_id]}}, "limit": 200}
        return sorted(
            task["name"] for task in httpx.post(f"{self.url}/task_runs/filter", json=of_run, timeout=30).json()
        )

    def artifacts(self, flow_run_id: str) -> dict[str, Any]:
        of_run = {"artifacts": {"flow_run_id": {"any_": [flow_run_id]}}}
        found = httpx.post(f"{self.url}/artifacts/filter", json=of_run, timeout=30).json()
        return {artifact["type"]: artifact for artifact in found}


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory):
    with server(tmp_path_factory.mktemp("server")) as found:
        assert found.url is not None, found.reason
        yield Api(found.url)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A run of three iterations without Prefect, which every other must end equal to."""
    training = Training(tmp_path_factory.mktemp("undisturbed"), "run", "--direct")
    assert training.end().code == 0
    return training
