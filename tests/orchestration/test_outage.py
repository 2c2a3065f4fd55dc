"""Prefect's API is away for five minutes in the middle of a run, and comes back: the run never stops for it."""

import json
import os
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from flows import server as servers
from flows.server import server
from tests.orchestration.conftest import Api, Training, eventually
from tests.orchestration.test_server import keepers

AWAY_SECONDS = float(os.environ.get("PAPO_OUTAGE_SECONDS", "300"))
ITERATIONS = 30
AFTERWARDS = 3
"""Iterations that are left when the server is back, at least."""


@pytest.mark.long
@pytest.mark.timeout(3 * AWAY_SECONDS + 900)
def test_a_run_goes_on_while_the_api_is_away_and_its_states_end_true(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The managed server is killed and, five minutes later, started again on its port and database. Nothing is lost or
    done twice: the ledger is that of a run without Prefect, in one attempt and one flow run, which ends Completed."""
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    count = ("--iterations", str(ITERATIONS))
    undisturbed = Training(tmp_path / "undisturbed", "run", "--direct", *count)
    assert undisturbed.end().code == 0

    runs, hold = tmp_path / "runs", tmp_path / "hold"
    hold.touch()
    # A pause at each of about five requests: the run takes half as long again as the server is away.
    pause = AWAY_SECONDS * 1.5 / (5 * ITERATIONS)
    training = Training(
        runs, "run", *count, "--hold", str(hold), "--pause", f"{pause:.2f}", "--bookkeeping", "300"
    )  # fmt: skip
    training.wait_for("iterations/00000/commit.json")
    url: str = json.loads((runs / servers.HOME / servers.STATE).read_text())["url"]
    (keeper,) = keepers(runs)
    for child in keeper.children():
        child.kill()
    eventually(lambda: not keepers(runs))
    hold.unlink()

    began, before = time.monotonic(), len(training.policy)
    while time.monotonic() - began < AWAY_SECONDS:
        time.sleep(1.0)
    made = len(training.policy) - before
    assert made > 0, "the run stood still while the API was away"
    assert len(training.policy) <= 1 + ITERATIONS - AFTERWARDS, "the run was over before the server came back"

    with server(runs, port=urlsplit(url).port or 0) as found:
        assert found.url == url, found.message
        ended = training.end()
        assert ended.code == 0, ended.said
        assert ended.report == {**ended.report, "state": "done", "iteration": ITERATIONS}
        assert training.ledger == undisturbed.ledger
        (flow_run_id,) = training.flow_runs
        assert Api(url).state_is(flow_run_id, "COMPLETED")
        wanted = {f"{iteration:05d}/update" for iteration in range(ITERATIONS - AFTERWARDS + 1, ITERATIONS)}
        assert eventually(lambda: wanted <= set(Api(url).tasks(flow_run_id)), patience=20.0), "seen again afterwards"
    assert [event["event"] for event in training.events].count("opened") == 1
    eventually(lambda: not keepers(runs))
