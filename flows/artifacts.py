"""A run in the Prefect UI: its progress, a table of the latest iterations' numbers, and links to where the rest is.

Published by a thread that takes the newest state and leaves out what came before, so that a slow or dead server costs
training nothing; what could not be shown is counted and ends up as one event in the run's own journal.
"""

import json
import re
import threading
import time
from collections import deque
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import ArtifactCreate, ArtifactUpdate
from prefect.states import Crashed

Numbers = dict[str, float | int | bool | None]

ROWS = 30
"""Iterations in the table."""
PAUSE_SECONDS = 2.0
"""Between two publications."""
REFRESH_SECONDS = 60.0
"""How old the age of the last progress may be."""
END_SECONDS = 3.0
"""How long the end of a run waits for the last one."""
COLUMNS = {
    "accuracy": "accuracy",
    "predicted_accuracy": "predicted accuracy",
    "outcome_mean": "reward",
    "process_mean": "process score",
    "length_mean": "length",
    "zero_advantage_ratio": "zero advantage",
    "evaluation/accuracy": "held-out accuracy",
    "evaluation/predicted_accuracy": "held-out predicted accuracy",
}


class Artifacts:
    """The three artifacts of one flow run. `dead` are earlier flow runs of this run, whose processes are gone."""

    def __init__(self, run_id: str, flow_run_id: UUID, *, links: str, dead: list[UUID]) -> None:
        self._run_id = run_id
        self._flow_run_id = flow_run_id
        self._links = links
        self._dead = dead
        self._rows: deque[dict[str, Any]] = deque(maxlen=ROWS)
        self._percent = 0.0
        self._moved_at = time.time()
        self._made: dict[str, UUID] = {}
        self._news = threading.Event()
        self._ending = threading.Event()
        self.failures = 0
        self.reason: str | None = None
        self._thread = threading.Thread(target=self._publish, name="papo-artifacts", daemon=True)
        self._thread.start()

    def move(self) -> None:
        """Note that something moved; returns at once and publishes nothing by itself."""
        self._moved_at = time.time()

    def show(self, iteration: int, values: Numbers, *, done: int, total: int) -> None:
        """Note an iteration's numbers; returns at once."""
        self._rows.append(table_row(iteration, values))
        self._percent = 100.0 * min(done, total) / total
        self._news.set()

    def close(self) -> None:
        """Publish the last state, waiting `END_SECONDS` for it at most."""
        self._ending.set()
        self._news.set()
        self._thread.join(END_SECONDS)
        if self._thread.is_alive():
            self._failed(TimeoutError("the server does not answer"))

    def _publish(self) -> None:
        try:
            with get_client(sync_client=True, httpx_settings={"timeout": 10.0}) as client:
                self._guarded(lambda: self._mark_crashed(client))
                while not self._ending.is_set():
                    self._guarded(lambda: self._once(client))
                    self._news.wait(REFRESH_SECONDS)
                    self._news.clear()
                    self._ending.wait(PAUSE_SECONDS)
                self._guarded(lambda: self._once(client))
        except Exception as error:
            self._failed(error)

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        self.reason = f"{type(error).__name__}: {error}"[:500]

    def _once(self, client: SyncPrefectClient) -> None:
        self._put(client, "links", "markdown", f"{self._links}\n\n{last_progress(self._moved_at, now=time.time())}")
        self._put(client, "progress", "progress", self._percent)
        if self._rows:
            # As the UI wants it: a table is JSON in a string.
            self._put(client, "iterations", "table", json.dumps(with_numbers(list(self._rows))))

    def _put(self, client: SyncPrefectClient, name: str, kind: str, content: Any) -> None:
        if name in self._made:
            client.update_artifact(self._made[name], ArtifactUpdate(data=content))
            return
        artifact = ArtifactCreate(
            key=f"{slug(self._run_id)}-{name}", type=kind, description=f"{self._run_id}: {name}", data=content,
            flow_run_id=self._flow_run_id,
        )  # fmt: skip
        self._made[name] = client.create_artifact(artifact).id

    def _mark_crashed(self, client: SyncPrefectClient) -> None:
        """A killed flow run reports nothing, so the holder of the run's lock reports its end.

        One that is scheduled again is no dead one: it waits for its retry.
        """
        for flow_run_id in self._dead:
            state = client.read_flow_run(flow_run_id).state
            if state is not None and (state.is_running() or state.is_cancelling()):
                gone = Crashed(message=f"Its process is gone; flow run {self._flow_run_id} goes on with the run.")
                client.set_flow_run_state(flow_run_id, gone, force=True)


def last_progress(moved_at: float, *, now: float) -> str:
    """When something last moved, and how long ago that is: a run that hangs is seen by it."""
    when = datetime.fromtimestamp(moved_at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"**Last progress** {when} UTC, {max(now - moved_at, 0.0) / 60:.0f} minutes ago"


def table_row(iteration: int, values: Numbers) -> dict[str, Any]:
    """The numbers of one iteration under the names that the terminal uses."""
    row: dict[str, Any] = {"iteration": "before" if iteration < 0 else iteration}
    for name, title in COLUMNS.items():
        number = values.get(name)
        row[title] = round(number, 4) if isinstance(number, float) else number
    row["seconds"] = round(sum(float(spent or 0) for name, spent in values.items() if name.startswith("seconds/")), 2)
    return row


def with_numbers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without the columns that have no number in any of them."""
    kept = [title for title in rows[0] if any(row[title] is not None for row in rows)]
    return [{title: row[title] for title in kept} for row in rows]


def slug(name: str) -> str:
    """As artifact keys have to be: lower case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "run"
