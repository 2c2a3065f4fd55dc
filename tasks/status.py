"""What a run directory says about itself, without touching it."""

import json
from pathlib import Path
from typing import Any

from schemas.records import Record
from tasks.checkpoints import FOLDER as CHECKPOINTS
from tasks.disk import LocalDisk
from tasks.evaluate import EVALUATED
from tasks.journal import EVENTS, read_lines
from tasks.ledger import head_of
from tasks.lock import is_held, read_holder
from tasks.runfile import read_run_file
from tasks.store import RunStore


class Measured(Record):
    """One evaluation on the held-out prompts."""

    version: int
    """Iterations that the policy had had."""
    accuracy: float | None
    """What a verifier found; None where a reward model judged, or no row could be judged."""
    n: int
    sound_ratio: float | None = None
    predicted_accuracy: float | None = None
    """What a reward model says; None where a verifier judged."""
    llm_corrected: float | None = None
    """The part of the rows that is right by an LLM's word alone; None without a second opinion."""

    @property
    def shown(self) -> str:
        """The share of right rows, which says so where it is only predicted, or in part an LLM's word."""
        if self.predicted_accuracy is not None:
            return f"{self.predicted_accuracy:.3f} predicted"
        by_llm = f" ({self.llm_corrected:.3f} of it by an LLM)" if self.llm_corrected else ""
        return "–" if self.accuracy is None else f"{self.accuracy:.3f}{by_llm}"


class RunStatus(Record):
    run_id: str
    state: str
    """new, running, done, stopped, paused, interrupted, failed, or crashed (nobody works on it and nobody said why)."""
    reason: str | None
    iteration: int
    """Iterations that are committed."""
    iterations: int
    """The horizon."""
    policy_sha256: str | None
    ledger_head: str | None
    config_sha256: str
    lineage: int
    first_evaluation: Measured | None
    latest_evaluation: Measured | None
    checkpoint: int | None
    """Version of the newest whole checkpoint."""
    tracking: dict[str, Any]
    holder: dict[str, str | int] | None
    """Who advances it now."""
    folder: str


def status_of(folder: Path) -> RunStatus | None:
    """The status of a run directory, or None if it is none. Raises StoreError where its chain does not hold."""
    disk = LocalDisk(folder)
    run_file = read_run_file(disk)
    if run_file is None:
        return None
    commits = RunStore(disk).commits()
    events = read_lines(disk.read(EVENTS)) if disk.exists(EVENTS) else []
    running = is_held(folder / "lock")
    config = run_file.config_at(len(commits))
    ended = next((event for event in reversed(events) if event["event"] in ("ended", "opened")), None)
    state, reason = _state(ended, running=running)
    measured = _measured(commits, events)
    # A checkpoint that is being written, or that a crash left half written, has a name that is no number.
    numbers = [name for name in disk.names(CHECKPOINTS) if name.isdecimal()]
    versions = [int(name) for name in numbers if disk.exists(f"{CHECKPOINTS}/{name}/manifest.json")]
    return RunStatus(
        run_id=run_file.run_id,
        state=state,
        reason=reason,
        iteration=max(commits[-1].iteration + 1, 0) if commits else 0,
        iterations=config.iterations,
        policy_sha256=commits[-1].state.policy.fingerprint.policy_sha256 if commits else None,
        ledger_head=head_of(commits),
        config_sha256=config.sha256,
        lineage=commits[-1].lineage if commits else 0,
        first_evaluation=measured[0] if measured else None,
        latest_evaluation=measured[-1] if measured else None,
        checkpoint=max(versions, default=None),
        tracking=_tracking(disk),
        holder=read_holder(folder / "lock") if running else None,
        folder=str(folder),
    )


def all_runs(runs: Path) -> list[RunStatus]:
    """Every run below a folder, by name."""
    found = (status_of(path.parent) for path in sorted(runs.glob("*/run.yaml")))
    return [status for status in found if status is not None]


def _state(ended: dict[str, Any] | None, *, running: bool) -> tuple[str, str | None]:
    if running:
        return "running", None
    if ended is None:
        return "new", None
    if ended["event"] == "opened":
        return "crashed", "its process ended without a word; starting it again goes on from its last commit"
    return ended["state"], ended.get("reason")


def _measured(commits: list[Any], events: list[dict[str, Any]]) -> list[Measured]:
    by_version = {
        event["version"]: _figures(event["version"], event)
        for event in events
        if event["event"] == EVALUATED and event["version"] <= (commits[-1].iteration + 1 if commits else -1)
    }
    by_version |= {
        commit.iteration + 1: _figures(commit.iteration + 1, commit.summary)
        for commit in commits
        if "evaluation/n" in commit.summary
    }
    return [by_version[version] for version in sorted(by_version)]


def _figures(version: int, summary: dict[str, Any]) -> Measured:
    return Measured(
        version=version,
        accuracy=summary.get("evaluation/accuracy"),
        n=summary["evaluation/n"],
        sound_ratio=summary.get("evaluation/sound_ratio"),
        predicted_accuracy=summary.get("evaluation/predicted_accuracy"),
        llm_corrected=summary.get("evaluation/llm_corrected"),
    )


def _tracking(disk: LocalDisk) -> dict[str, Any]:
    try:
        return json.loads(disk.read("tracking.json"))
    except (OSError, ValueError):
        return {"state": "off"}
