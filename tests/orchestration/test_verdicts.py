"""BUG-052: verdicts on the golden answers are the same in a Prefect task, submitted to threads, as anywhere else."""

import json
import os
import subprocess
import sys
from pathlib import Path

from papo.rewards import Answered, MathAnswer, judge_all
from tests.orchestration.conftest import ROOT, Api
from tests.orchestration.verdict_flow import ROWS


def test_bug_052_a_prefect_task_judges_as_the_main_thread_does(api: Api, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.orchestration.verdict_flow"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_API_URL": api.url}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    in_tasks = json.loads(done.stdout.strip().splitlines()[-1])
    rows = [Answered(completion=row["answer"], reference_answer=row["gold"]) for row in ROWS]
    here = [verdict.correct for verdict in judge_all(MathAnswer(), rows)]
    assert in_tasks == [here[start::4] for start in range(4)]
    assert all(found == row["expected"] for found, row in zip(here, ROWS, strict=True) if row["expected"] is not None)
