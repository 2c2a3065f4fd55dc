"""A reporter that also shows the run in the Prefect UI."""

from typing import Any
from uuid import UUID

from flows.artifacts import ROWS, Artifacts
from flows.proposals import PLAIN, Proposals
from flows.reporters import Live, Numbers
from papo.printable import code_span
from papo.spelling import metrics_of
from tasks.journal import EVENTS, METRICS, read_lines
from tasks.run import Run

FLOW_RUN = "flow_run"
"""The event that says which flow run advanced the run."""
EARLIER = 4
"""How many of the last flow runs are looked at."""
TAIL = 1 << 20
"""Bytes of a journal that are looked at: for earlier flow runs, for the latest iterations."""


class Shown:
    """What `inner` shows, and the artifacts once a run is attached."""

    def __init__(self, inner: Live) -> None:
        self._inner = inner
        self._artifacts: Artifacts | None = None
        self._run: Run | None = None

    def attach(self, run: Run, flow_run_id: str | None, *, where: str | None, by: Proposals = PLAIN) -> None:
        """Show `run` under this flow run, and close the books on earlier ones that died without a word.

        `where`: how to open MLflow. `by`: how the commands are typed that the page proposes.
        """
        if flow_run_id is None:
            return
        # A retried flow run is the one that was killed: it bears its id, and is alive.
        earlier = [other for other in flow_runs(run) if other != UUID(flow_run_id)]
        run.journal.event(FLOW_RUN, flow_run_id=flow_run_id)
        self._run = run
        self._artifacts = Artifacts(run.run_id, UUID(flow_run_id), links=links_of(run, where, by), dead=earlier)
        journal = run.disk.read_tail(METRICS, TAIL) if run.disk.exists(METRICS) else b""
        for line in metrics_of(journal)[-ROWS:]:
            self._artifacts.show(line["iteration"], line["values"], done=line["iteration"] + 1, total=run.horizon)

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
        self._moved()
        self._inner.stage(iteration, stage)

    def progress(self, done: int, total: int) -> None:
        self._moved()
        self._inner.progress(done, total)

    def iteration(self, iteration: int, values: Numbers) -> None:
        self._inner.iteration(iteration, values)
        if self._artifacts is not None and self._run is not None:
            self._artifacts.show(iteration, values, done=iteration + 1, total=self._run.horizon)

    def _moved(self) -> None:
        if self._artifacts is not None:
            self._artifacts.move()


def flow_runs(run: Run) -> list[UUID]:
    """The last flow runs that advanced this run; their end may not have been reported. Another than the one at hand is
    over, because that one holds the lock."""
    if not run.disk.exists(EVENTS):
        return []
    ids = list[UUID]()
    origin: Any = None
    for line in read_lines(run.disk.read_tail(EVENTS, TAIL)):
        if line.get("event") == "opened" and line.get("origin") != origin:
            # Before that, the journal is of the run that this one is a copy of: what advances that one may be alive.
            ids, origin = [], line.get("origin")
        elif line.get("event") == FLOW_RUN:
            ids.append(UUID(line["flow_run_id"]))
    return list(dict.fromkeys(reversed(ids)))[:EARLIER]


def links_of(run: Run, where: str | None, by: Proposals = PLAIN) -> str:
    """Markdown: where the run's own record is, its numbers, and how to go on with it."""
    lines = [
        f"**Run directory** {code_span(run.disk.local('.'))}",
        f"**MLflow** {code_span(where)}" if where else "**MLflow** off; the numbers are in `metrics.jsonl`",
        f"**Status** {code_span(by('status', run.run_id))}",
        f"**Go on** {code_span(by('resume', run.run_id))}",
    ]
    return "\n\n".join(lines)
