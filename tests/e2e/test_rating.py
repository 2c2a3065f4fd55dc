"""`papo data rate`: the first policy's pass rates, whatever interrupts; what a run's visits say afterwards."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tasks.difficulty import read_rates
from tests.e2e.trained import ROOT, SECONDS, Trained

RUN = str(ROOT / "deployments/runs/arithmetic.yaml")
SETTINGS = ("data.train.count=48", "engine.shard_size=32")
PAPO = Path(sys.executable).with_name("papo")


def command(home: Path, runs: str) -> list[str | Path]:
    sets = [word for setting in SETTINGS for word in ("--set", setting)]
    return [PAPO, "data", "rate", RUN, *sets, "--output", f"{runs}.jsonl", "--runs", runs, "--models", home / "models"]


def rated(home: Path, runs: str) -> str:
    done = subprocess.run(command(home, runs), cwd=home, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rating_is_the_same_after_a_kill_and_tells_rows_apart(home: Path) -> None:
    text = rated(home, "rating")
    found = rows(home / "rating.jsonl")
    assert [row["prompt_id"] for row in found] == [str(number) for number in range(48)]
    assert all(row["tries"] + row["undecided"] == 8 for row in found)
    assert len({row["pass_rate"] for row in found}) > 3
    assert len(read_rates(home / "rating.jsonl")) == 48
    assert f"papo data prepare {RUN} --pass-rates rating.jsonl" in text

    with (home / "killed.out").open("wb") as output:
        process = subprocess.Popen(command(home, "killed"), cwd=home, stdout=output, stderr=output)
        deadline = time.monotonic() + SECONDS
        # 12 shards of 32: the kill comes after the first and long before the last.
        while not list((home / "killed").glob("*/iterations/genesis/evaluations-*.parquet")):
            assert process.poll() is None, (home / "killed.out").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (home / "killed.jsonl").exists()
    rated(home, "killed")
    assert rows(home / "killed.jsonl") == found


def test_a_run_lists_the_rows_that_it_never_or_always_solved(train: Callable[..., Trained]) -> None:
    """BUG-133, on a real run."""
    visited = train("visited", "iterations=2", "evaluation=null")
    arguments = ["data", "visits", "visited", "--min-visits", "1", "--output", "visits.jsonl", "--runs", "runs"]
    done = subprocess.run([PAPO, *arguments], cwd=visited.home, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = rows(visited.home / "visits.jsonl")
    assert sum(row["tries"] for row in found) == 2 * 16 * 8
    never = [row["prompt_id"] for row in found if row["pass_rate"] == 0.0]
    assert never
    assert f"Never       {len(never)} rows: {never[0]}" in done.stdout
