"""What a run directory says about itself, without touching it."""

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from papo.errors import StoreError
from schemas.records import CheckpointManifest, Record
from tasks.checkpoints import FOLDER as CHECKPOINTS
from tasks.checkpoints import MANIFEST
from tasks.disk import LocalDisk
from tasks.journal import EVALUATED, EVENTS, METRICS, read_events, read_lines
from tasks.ledger import Ledger
from tasks.lock import is_held, moved_at, read_holder
from tasks.relocated import is_called
from tasks.runfile import RunFile, differences, read_run_file
from tasks.soundness import Lookout, check_genesis, check_model
from tasks.store import RunStore
from tasks.stored import StoredCommit

_TAIL = 1 << 16
"""Bytes at a journal's end that its last line is looked for in."""
_TRACKING = TypeAdapter(dict[str, Any])
CHECKED = (
    "run.yaml",
    "the chain of commits",
    "ledger.jsonl against them",
    "model/",
    "prepared data and held-out prompts",
    "that no committed artifact and no file of the newest checkpoint is missing",
)
UNREAD = (
    "the bytes of iterations' artifacts, sidecars and update records (held to their hashes when a replay or a "
    "look at samples reads them)",
    "the bytes of checkpoints and reference exports (when they are loaded)",
    "metrics.jsonl, events.jsonl, tracking.json, logs and other exports (views of the run, which nothing rests on)",
)


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
    """The folder's name."""
    origin: str | None = None
    """The run that this one is a copy of, or what its folder was called before."""
    state: str
    """new, running, done, stopped, paused, interrupted, failed, crashed (nobody works on it and nobody said why), or
    damaged (in a list of runs: a file that all rests on is not what was written)."""
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
    progress_age: float | None = None
    """Seconds since anything moved: a token, a row, a micro-batch, a stage; None where nobody works on the run."""
    folder: str
    checked: tuple[str, ...]
    """What was held to its hashes for this status."""
    unchecked: tuple[str, ...]
    """What was not, and when it is."""
    faults: tuple[str, ...]
    """What is wrong with files that the run would not stop for, or not yet."""
    amendments: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Each config epoch after the first: its first iteration, and what it changed (`a.b: 1 → 2`)."""
    last_moved: float | None = None
    """When the run's journal was last written, in seconds since the epoch."""


def status_of(folder: Path) -> RunStatus | None:
    """The status of a run directory, or None if it is none. Raises StoreError where its chain does not hold."""
    disk = LocalDisk(folder)
    run_file = read_run_file(disk)
    if run_file is None:
        return None
    ledger, lookout, evaluated = Ledger(disk), Lookout(disk), _Evaluations()
    store = RunStore(disk)
    commits = store.history(ledger.expect, lookout.see, evaluated.see)
    running = is_held(folder / "lock")
    ledger.check(running=running)
    check_model(disk, run_file)
    check_genesis(store, commits)
    config, newest = run_file.config_at(len(commits)), _newest_checkpoint(disk)
    ended, events = _told(folder / EVENTS)
    state, reason = _state(ended, running=running)
    measured = evaluated.measured(events, up_to=len(commits) - 1)
    return RunStatus(
        run_id=folder.name or folder.resolve().name,
        origin=_origin(run_file, folder),
        state=state,
        reason=reason,
        iteration=max(commits[-1].iteration + 1, 0) if commits else 0,
        iterations=config.iterations,
        policy_sha256=commits[-1].state.policy.fingerprint.policy_sha256 if commits else None,
        ledger_head=ledger.head,
        config_sha256=run_file.config_sha256_at(len(commits)),
        lineage=commits[-1].lineage if commits else 0,
        first_evaluation=measured[0] if measured else None,
        latest_evaluation=measured[-1] if measured else None,
        checkpoint=newest[0],
        tracking=_tracking(disk),
        holder=read_holder(folder / "lock") if running else None,
        progress_age=max(0.0, time.time() - moved_at(folder / "lock")) if running else None,
        folder=str(folder),
        checked=CHECKED,
        unchecked=UNREAD,
        faults=tuple(text for text in (lookout.told, newest[1]) if text is not None),
        amendments=_amendments(run_file),
        last_moved=_last_moved(disk),
    )


def _amendments(run_file: RunFile) -> tuple[tuple[int, tuple[str, ...]], ...]:
    return tuple(
        (after.since, tuple(f"{name}: {was} → {now}" for name, was, now in differences(before.config, after.config)))
        for before, after in pairwise(run_file.epochs)
    )


def _last_moved(disk: LocalDisk) -> float | None:
    ends = [read_lines(disk.read_tail(path, _TAIL))[-1:] for path in (EVENTS, METRICS) if disk.exists(path)]
    return max((float(line["time"]) for lines in ends for line in lines if "time" in line), default=None)


def _told(journal: Path) -> tuple[dict[str, Any] | None, dict[int, dict[str, Any]]]:
    """What the journal of events says of how the run ended, and the evaluations that stand only there, by version."""
    ended, evaluated = None, dict[int, dict[str, Any]]()
    for event in read_events(journal, "ended", "opened", EVALUATED):
        if event["event"] == EVALUATED:
            evaluated[event["version"]] = event
        else:
            ended = event
    return ended, evaluated


def _newest_checkpoint(disk: LocalDisk) -> tuple[int | None, str | None]:
    """Its version, and what is wrong with it as far as can be seen without reading all of it."""
    # A checkpoint that is being written, or that a crash left half written, has a name that is no number.
    versions = sorted((int(name) for name in disk.names(CHECKPOINTS) if name.isdecimal()), reverse=True)
    for version in versions:
        folder = f"{CHECKPOINTS}/{version:05d}"
        try:
            manifest = CheckpointManifest.model_validate_json(disk.read(f"{folder}/{MANIFEST}"))
        except FileNotFoundError:
            continue
        except ValueError:
            return version, f"{folder}/{MANIFEST} is not whole: resume will use an older checkpoint"
        for name, (_, size) in manifest.files.items():
            path = f"{folder}/{name}"
            if not disk.exists(path) or disk.size(path) != size:
                what = "has another size than was saved" if disk.exists(path) else "is missing"
                return version, f"{path} {what}: resume will use an older checkpoint"
        return version, None
    return None, None


def _origin(run_file: RunFile, folder: Path) -> str | None:
    is_here = run_file.run_id == folder.name or is_called(folder, run_file.run_id)
    return (run_file.origin[-1] if run_file.origin else None) if is_here else run_file.run_id


def all_runs(runs: Path) -> list[RunStatus]:
    """Every run below a folder, by name."""
    found = (_told_of(path.parent) for path in sorted(runs.glob("*/run.yaml")))
    return [status for status in found if status is not None]


def _told_of(folder: Path) -> RunStatus | None:
    """A run's status; one that is damaged hides none of the others."""
    try:
        return status_of(folder)
    except StoreError as error:
        return RunStatus(
            run_id=folder.name, state="damaged", reason=str(error), iteration=0, iterations=0, policy_sha256=None,
            ledger_head=None, config_sha256="", lineage=0, first_evaluation=None, latest_evaluation=None,
            checkpoint=None, tracking={}, holder=None, folder=str(folder), checked=(), unchecked=UNREAD,
            faults=(str(error),),
        )  # fmt: skip


def _state(ended: dict[str, Any] | None, *, running: bool) -> tuple[str, str | None]:
    if running:
        return "running", None
    if ended is None:
        return "new", None
    if ended["event"] == "opened":
        return "crashed", "its process ended without a word; starting it again goes on from its last commit"
    return ended["state"], ended.get("reason")


class _Evaluations:
    """Hears of each commit and keeps the first and the latest evaluation."""

    def __init__(self) -> None:
        self._found: dict[int, dict[str, Any]] = {}

    def see(self, commit: StoredCommit) -> None:
        if "evaluation/n" in commit.summary:
            kept = list(self._found.items())[:1]
            self._found = dict([*kept, (commit.iteration + 1, commit.summary)])

    def measured(self, events: dict[int, dict[str, Any]], *, up_to: int) -> list[Measured]:
        """In order, with those that stand only in events, of a run's last version."""
        known = {version: event for version, event in events.items() if version <= up_to} | self._found
        return [_figures(version, known[version]) for version in sorted(known)]


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
        return _TRACKING.validate_json(disk.read("tracking.json"))
    except (OSError, ValueError):
        return {"state": "off"}
