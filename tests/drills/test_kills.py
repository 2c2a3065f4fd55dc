"""At least twenty SIGKILLs of a run without Prefect, on scripted engines: every one ends as if it had not been."""

import os
import re
import signal
import time
from collections.abc import Callable
from random import Random

import pytest

from tests.drills.runs import Scripted, wait_until

Make = Callable[[str], Scripted]
LIVES = 6
"""Of a run that is killed at random moments, before the last one is left in peace."""


OFTEN = ("--set", "iterations=12", "--set", "checkpoint.every=1")
"""Enough checkpoints for a kill at each step of making one and of removing one."""
WHOLE = re.compile("rollouts|generate-|commit|ledger|checkpoints")
"""What is published in each of the ways there are (artifact, sidecar, commit, rows, folder): killed at every step."""
NAMED = re.compile("rename|link|metrics")
"""Of everything else, the step that gives it its name."""


def steps(log: list[str]) -> list[str]:
    """A pattern for each kind of operation in the second iteration, in the order of their first time."""
    first = [number for number, line in enumerate(log) if line.startswith("make_folder iterations/")][2]
    chosen = [line for line in log[first:] if "scratch" not in line and (WHOLE.search(line) or NAMED.search(line))]
    return list(dict.fromkeys(chosen))


def test_a_kill_at_each_publication_step_changes_nothing(scripted: Make) -> None:
    """BUG-103: between rollouts, scores, advantages, update, commit, ledger, evaluation and checkpoint.

    One run, killed at the next kind of step in each of its lives, so that every life also has a kill to recover from.
    """
    straight, run = scripted("straight"), scripted("killed")
    log = straight.runs.parent / "operations"
    assert straight.run(*OFTEN, log=str(log)) == 0, straight.text
    chosen = steps(log.read_text().splitlines())
    assert len(chosen) >= 20
    for number, step in enumerate(chosen):
        code = run.run(*OFTEN, kill_at=step)
        assert code == -signal.SIGKILL, f"{step} was never reached in life {number}:\n{run.text}"
        assert run.status.state == "crashed"
    assert run.run(*OFTEN) == 0, run.text
    assert run.hashes == straight.hashes


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long)])
def test_kills_at_random_moments_change_nothing(scripted: Make, seed: int) -> None:
    straight, run = scripted("straight"), scripted("killed")
    assert straight.run() == 0, straight.text
    rng, killed = Random(seed), 0
    while killed < LIVES:
        process = run.start(pause="0.02")
        wait_until((run.folder / "events.jsonl").exists)
        time.sleep(rng.random() * 0.4)
        if process.exitcode is None and process.pid is not None:
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        if process.exitcode != -signal.SIGKILL:
            break
        killed += 1
    assert killed >= 2, "the run was over before it could be killed"
    assert run.run() == 0, run.text
    assert run.hashes == straight.hashes
