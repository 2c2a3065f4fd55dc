"""`tracking.json` in a run directory: how far the copy in MLflow is. Written by the follower, read by `status`."""

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path

STATUS = "tracking.json"


@dataclass
class TrackingStatus:
    """Nothing depends on it: the journal is the record."""

    state: str
    """starting, ok, degraded (the journal is ahead, for a reason) or off."""
    uri: str | None = None
    experiment: str | None = None
    mlflow_run_id: str | None = None
    folder: str | None = None
    """Whose MLflow run that is: the run's id and folder when it was last copied. A copy has its own."""
    run_url: str | None = None
    behind: int = 0
    """Journal lines that are not in MLflow yet."""
    skipped: int = 0
    """Values that are no finite numbers, so that MLflow cannot hold them; since the follower's start."""
    reason: str | None = None


def read_status(run_dir: Path) -> TrackingStatus | None:
    """None where nothing follows this run, or never did."""
    try:
        found = json.loads((run_dir / STATUS).read_text())
        known = [field.name for field in fields(TrackingStatus)]
        return TrackingStatus(**{name: value for name, value in found.items() if name in known})
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def write_status(run_dir: Path, status: TrackingStatus) -> None:
    """In one step, so that a reader never sees half of it."""
    draft = run_dir / f".{STATUS}.{os.getpid()}"
    draft.write_text(json.dumps(asdict(status), indent=1))
    draft.replace(run_dir / STATUS)
