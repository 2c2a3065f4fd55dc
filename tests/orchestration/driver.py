"""A training process with the scripted engine, for tests that kill it.

    python -m tests.orchestration.driver RUNS RUN_ID [--iterations N] [--pause SECONDS] [--hold FILE] [--direct] …

Everything but engine, data and model is real: folder, lock, journal, follower, server, flow. Prints one JSON line at
the end. `--pause` sleeps at each request, so that there is something to be killed in; `--hold` waits
after the first update while FILE exists.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, TextIO
from uuid import UUID

from flows import build
from flows.proposals import Places
from flows.reporters import LogReporter
from schemas.config import RunConfig
from tasks.clock import WallClock
from tasks.disk import LocalDisk
from tasks.lock import FileLease
from tasks.opening import open_run
from tasks.surroundings import Surroundings
from tests.simulation.engine import ScriptedEngine
from tests.simulation.world import CONFIG, sources


class SlowEngine(ScriptedEngine):
    """Takes `pause` seconds for each request, and after its first update waits while `hold` exists."""

    pause = 0.0
    hold: Path | None = None

    def _call(self) -> None:
        time.sleep(self.pause)
        while self.updates and self.hold is not None and self.hold.exists():
            time.sleep(0.05)
        super()._call()


def open_scripted(config, *, run_id: str | None, overrides: Any, amend: bool, reporter: Any, places: Places):
    """Stands in for `flows.build.open_from`: the same run directory, without an engine process."""
    folder = places.run(run_id or "run")
    folder.mkdir(parents=True, exist_ok=True)
    disk = LocalDisk(folder)
    set_: dict[str, Any] = {name: json.loads(value) for name, value in (item.split("=", 1) for item in overrides)}
    around = Surroundings(
        disk=disk,
        base=str(folder),
        clock=WallClock(),
        lease=lambda: FileLease(folder / "lock"),
        engine=lambda settings: SlowEngine(disk),
        sources=sources,
        model=lambda config: ("somewhere", {"tokenizer.json": b"{}"}),
        reporter=reporter,
    )
    return open_run(around, run_id or "run", RunConfig.model_validate({**CONFIG, **set_}), amend=amend)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=Path)
    parser.add_argument("run_id")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--hold", type=Path)
    parser.add_argument("--bookkeeping", type=float, default=20.0)
    parser.add_argument("--mlflow", default="off")
    parser.add_argument("--direct", action="store_true")
    parser.add_argument("--retry", help="The flow run that is run again, as Prefect does for Retry in its UI.")
    given = parser.parse_args(arguments)
    SlowEngine.pause, SlowEngine.hold = given.pause, given.hold
    build.open_from = open_scripted
    from flows import launch as launching

    launching.BOOKKEEPING_SECONDS = given.bookkeeping
    if given.retry:
        launching._flow = lambda reporter: retry_of(given.retry)
    set_ = [f"iterations={given.iterations}", f'tracking={{"mlflow": "{given.mlflow}"}}']
    started = time.monotonic()
    ended = launching.launch(
        "run.yaml", run_id=given.run_id, overrides=set_, direct=given.direct,
        reporter=LogReporter(lambda line: say(line, sys.stderr)),
        places=Places(runs=given.runs, models=given.runs),
    )  # fmt: skip
    report = {"state": ended.state, "iteration": ended.iteration, "seconds": time.monotonic() - started}
    say(json.dumps(report), sys.stdout)
    launching.leave_within(given.bookkeeping, 0)


def retry_of(flow_run_id: str):
    """The training flow as a further attempt of that flow run."""
    from prefect.client.orchestration import get_client
    from prefect.flow_engine import run_flow
    from prefect.states import AwaitingRetry

    from flows.train import train

    with get_client(sync_client=True) as client:
        client.set_flow_run_state(UUID(flow_run_id), AwaitingRetry(), force=True)
        flow_run = client.read_flow_run(UUID(flow_run_id))
    return lambda **parameters: run_flow(train, flow_run=flow_run, parameters=parameters)


def say(line: str, stream: TextIO) -> None:
    stream.write(f"{line}\n")
    stream.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
