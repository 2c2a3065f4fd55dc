"""The library's scorers, disarmed; for the child processes."""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from papo.gym.guards import disarm
from papo.gym.strictness import Entry, holds

Scorer = Callable[[str, Entry], float]
_UNFIT = {"codeio": "its problems come of running the programs of a data set, and no program is run here"}


@lru_cache(maxsize=64)
def scorer_of(task: str, settings: str) -> Scorer:
    """What scores answers to problems of a task made with `settings` (JSON). Raises ValueError for unknown
    tasks and for unfit ones."""
    import reasoning_gym  # noqa: PLC0415  # an optional extra, of which only children know

    tasks: dict[str, Any] = vars(reasoning_gym.factory)["DATASETS"]
    if task not in tasks:
        known = ", ".join(sorted(tasks))
        raise ValueError(f"reasoning-gym has no task {task!r}; it has {known}")
    if task in _UNFIT:
        raise ValueError(f"reasoning-gym's task {task!r} is not used: {_UNFIT[task]}")
    dataset: Any = reasoning_gym.create_dataset(task, size=1, seed=0, **json.loads(settings))
    disarm()
    score: Scorer = dataset.score_answer

    def strict(answer: str, entry: Entry) -> float:
        found = float(score(answer, entry))
        return found if found < 1.0 or holds(task, answer, entry) else 0.0

    return strict
