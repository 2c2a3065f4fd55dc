"""When a run ends before its horizon: derived from what is committed, so that it is the same after any resume."""

from collections.abc import Callable, Sequence
from itertools import takewhile

from schemas.config import RunConfig
from schemas.records import Commit


def stop_reason(config: RunConfig, commits: Sequence[Commit]) -> str | None:
    """A line that says why the run stops here, or None.

    target_accuracy: the latest evaluation reached it. all_truncated, non_finite: so many iterations in a row.
    """
    target = config.stop.target_accuracy
    accuracy = commits[-1].summary.get("evaluation/accuracy")
    if target is not None and accuracy is not None and accuracy >= target:
        return f"target_accuracy: held-out accuracy {accuracy:.3f} has reached {target}"
    truncated = _streak(commits, lambda commit: commit.summary.get("truncated_ratio") == 1.0)
    if truncated >= config.stop.all_truncated:
        return (
            f"all_truncated: every completion of the last {truncated} iterations was cut off at "
            f"sampling.max_completion_length = {config.sampling.max_completion_length}; no answer was ever finished. "
            "Raise the limit (papo resume --amend sampling.max_completion_length=N)"
        )
    skipped = _streak(commits, _without_step)
    if skipped >= config.stop.non_finite:
        return (
            f"non_finite: no optimizer step of the last {skipped} iterations had a finite loss and gradient; the "
            "weights are those from before. Lower optimizer.learning_rate or check the rewards"
        )
    return None


def _without_step(commit: Commit) -> bool:
    return bool(commit.summary.get("update/skipped_steps")) and not commit.summary.get("update/optimizer_steps")


def _streak(commits: Sequence[Commit], holds: Callable[[Commit], bool]) -> int:
    return sum(1 for _ in takewhile(holds, reversed(commits)))
