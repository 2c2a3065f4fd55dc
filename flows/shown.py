"""A reporter that also shows the run in the Prefect UI."""

from uuid import UUID

from flows.artifacts import Artifacts
from flows.reporters import Live, Numbers
from tasks.journal import EVENTS, read_lines
from tasks.run import Run

FLOW_RUN = "flow_run"
"""The event that says which flow run advanced the run."""
TAIL = 1 << 20
"""Bytes of events that are searched for earlier flow runs."""


class Shown:
    """What `inner` shows, and the artifacts once a run is attached."""

    def __init__(self, inner: Live) -> None:
        self._inner = inner
        self._artifacts: Artifacts | None = None
        self._run: Run | None = None

    def attach(self, run: Run, flow_run_id: str | None, *, links: str) -> None:
        """Show `run` under this flow run, and close the books on earlier ones that died without a word."""
        if flow_run_id is None:
            return
        earlier = flow_runs(run)
        run.journal.event(FLOW_RUN, flow_run_id=flow_run_id)
        self._run = run
        self._artifacts = Artifacts(run.run_id, UUID(flow_run_id), links=links, dead=earlier)

    def begin(self, done: int, total: int) -> None:
        self._inner.begin(done, total)

    def end(self) -> None:
        if self._artifacts is not None and self._run is not None:
            self._artifacts.close()
            if self._artifacts.failures:
                failed = {"failures": self._artifacts.failures, "reason": self._artifacts.reason}
                self._run.journal.event("not_shown", **failed)
        self._inner.end()

    def message(self, text: str) -> None:
        self._inner.message(text)

    def stage(self, iteration: int, stage: str) -> None:
        self._inner.stage(iteration, stage)

    def progress(self, done: int, total: int) -> None:
        self._inner.progress(done, total)

    def iteration(self, iteration: int, values: Numbers) -> None:
        self._inner.iteration(iteration, values)
        if self._artifacts is not None and self._run is not None:
            self._artifacts.show(iteration, values, done=iteration + 1, total=self._run.horizon)


def flow_runs(run: Run) -> list[UUID]:
    """Flow runs that advanced this run before, and whose end may not have been reported. All are over: we hold the lock."""
    if not run.disk.exists(EVENTS):
        return []
    lines = read_lines(run.disk.read_tail(EVENTS, TAIL))
    return [UUID(line["flow_run_id"]) for line in lines if line.get("event") == FLOW_RUN][-3:]
