"""Runs through a real Prefect: what it shows, and that it decides nothing."""

import json
import re
import signal

import pytest

from tasks.lock import is_held
from tests.orchestration.conftest import Api, Training, eventually

GENESIS = ["prepare", "held_out", "first_state", "evaluate", "finish", "checkpoint"]
ITERATION = ["sample", "generate", "verify", "score", "logprobs", "advantage", "update", "finish"]


def test_a_run_through_prefect_is_shown_and_equals_one_without(api: Api, undisturbed: Training, tmp_path) -> None:
    """Tasks are named `00007/generate`; progress, table and links are artifacts; the ledger knows nothing of it."""
    training = Training(tmp_path, "shown")
    ended = training.end()
    assert ended.code == 0, ended.said
    assert ended.report["state"] == "done"
    assert training.ledger == undisturbed.ledger
    (flow_run_id,) = training.flow_runs
    assert api.state_is(flow_run_id, "COMPLETED")
    assert api.flow_run(flow_run_id)["name"] == "shown"
    wanted = {f"genesis/{stage}" for stage in GENESIS}
    wanted |= {f"{iteration:05d}/{stage}" for iteration in range(3) for stage in ITERATION}
    eventually(lambda: wanted <= set(api.tasks(flow_run_id)))
    artifacts = api.artifacts(flow_run_id)
    assert artifacts["progress"]["data"] == 100.0
    assert [row["iteration"] for row in json.loads(artifacts["table"]["data"])] == ["before", 0, 1, 2]
    assert str(training.folder) in artifacts["markdown"]["data"]
    assert re.search(r"\*\*Last progress\*\* \d{4}-\d\d-\d\d .* UTC, \d+ minutes ago", artifacts["markdown"]["data"])


@pytest.mark.parametrize(
    "at",
    [
        "iterations/00001/update-*.json",
        pytest.param("iterations/genesis/*.json", marks=pytest.mark.long),
        pytest.param("iterations/00000/commit.json", marks=pytest.mark.long),
        pytest.param("checkpoints/00002", marks=pytest.mark.long),
    ],
)
def test_a_killed_flow_is_resumed_to_the_bit(api: Api, undisturbed: Training, tmp_path, at: str) -> None:
    """BUG-115: SIGKILL the flow process: the lock is free, the next start goes on and marks the dead run crashed."""
    killed = Training(tmp_path, "killed", "--pause", "0.2")
    killed.wait_for(at)
    killed.signal(signal.SIGKILL)
    assert killed.end().code == -signal.SIGKILL
    assert not is_held(killed.folder / "lock")
    resumed = Training(tmp_path, "killed")
    ended = resumed.end()
    assert ended.code == 0, ended.said
    assert resumed.ledger == undisturbed.ledger
    assert resumed.policy == undisturbed.policy
    first, second = resumed.flow_runs
    assert api.state_is(first, "CRASHED")
    assert api.state_is(second, "COMPLETED")


def test_a_killed_flow_run_that_is_retried_is_not_its_own_corpse(api: Api, undisturbed: Training, tmp_path) -> None:
    """C-18: Retry runs the killed flow run again, under its id: it is running while it trains, and completed then."""
    killed = Training(tmp_path, "retried", "--pause", "0.2")
    killed.wait_for("iterations/00000/commit.json")
    killed.signal(signal.SIGKILL)
    killed.end()
    (flow_run_id,) = killed.flow_runs
    hold = tmp_path / "hold"
    hold.touch()
    retried = Training(tmp_path, "retried", "--hold", str(hold), "--retry", flow_run_id)
    eventually(lambda: len(retried.flow_runs) == 2)
    assert api.flow_run(flow_run_id)["state"]["type"] == "RUNNING"
    hold.unlink()
    ended = retried.end()
    assert ended.code == 0, ended.said
    assert retried.flow_runs == [flow_run_id, flow_run_id]
    assert retried.ledger == undisturbed.ledger
    assert api.state_is(flow_run_id, "COMPLETED")
    states = api.states(flow_run_id)
    assert "Crashed" not in states
    assert states[-1] == "Completed"


def test_a_second_start_is_refused_and_a_cancel_leaves_a_true_state(api: Api, undisturbed: Training, tmp_path) -> None:
    """BUG-117, BUG-119: one of two writers works; SIGTERM ends it as cancelled, with nothing left and all resumable."""
    hold = tmp_path / "hold"
    hold.touch()
    first = Training(tmp_path, "twice", "--hold", str(hold))
    first.wait_for("iterations/00000/commit.json")
    before = (first.folder / "run.yaml").read_bytes()
    second = Training(tmp_path, "twice").end()
    assert second.code != 0
    assert "is locked by pid" in second.said
    assert (first.folder / "run.yaml").read_bytes() == before
    first.signal(signal.SIGTERM)
    assert first.end().code != 0
    assert not is_held(first.folder / "lock")
    assert api.state_is(first.flow_runs[0], "CANCELLED")
    assert [event["state"] for event in first.events if event["event"] == "ended"] == ["interrupted"]
    resumed = Training(tmp_path, "twice")
    assert resumed.end().code == 0
    assert resumed.ledger == undisturbed.ledger
