"""A flow whose tasks judge answers in Prefect's threads: prints the golden verdicts as one JSON line."""

import json
import sys

from prefect import flow, task

from papo.rewards import MathAnswer
from tests.golden.golden_vectors import FOLDER

ROWS = [json.loads(line) for line in (FOLDER / "math_answer_cases.jsonl").open(encoding="utf-8")]


@task
def judged(start: int, step: int) -> list[bool | None]:
    """Verdicts of each step-th row."""
    math = MathAnswer()
    return [
        math(row["answer"], reference_answer=row["gold"], finish_reason="stop").correct for row in ROWS[start::step]
    ]


@flow
def verdicts(step: int) -> list[list[bool | None]]:
    """All rows, in `step` concurrent tasks (threads, by default)."""
    futures = [judged.submit(start, step) for start in range(step)]
    return [future.result() for future in futures]


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(verdicts(4)) + "\n")
