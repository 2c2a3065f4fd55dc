"""The library's scorers, disarmed; for the child processes."""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from papo.gym.guards import disarm

Scorer = Callable[[str, dict[str, Any]], float]


@lru_cache(maxsize=64)
def scorer_of(task: str, settings: str) -> Scorer:
    """What scores answers to problems of a task made with `settings` (JSON). Raises ValueError for unknown tasks."""
    import reasoning_gym  # noqa: PLC0415

    tasks: dict[str, Any] = vars(reasoning_gym.factory)["DATASETS"]
    if task not in tasks:
        known = ", ".join(sorted(tasks))
        raise ValueError(f"reasoning-gym has no task {task!r}; it has {known}")
    dataset: Any = reasoning_gym.create_dataset(task, size=1, seed=0, **json.loads(settings))
    disarm()
    return dataset.score_answer
