"""Whether the ten-thousandth iteration takes as long as the twentieth: `python -m benchmarks.many_iterations`.

Everything is real but the engine, which is the simulation's scripted one: the store with its fsyncs, contracts, ledger,
journal, checkpoints. No Prefect, no MLflow. For each length a run is made whose first iterations are run (`--real`) and
whose others are written by the store's own calls: each gets an iteration's artifacts (hard links to those of one that
ran) and a commit by `RunStore.commit`, `Ledger.append` and `Journal`. Then opening and status are timed, and real
iterations of all runs in turn, so that a busy machine slows them all alike.
"""

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from flows.iteration import iteration
from schemas.records import Commit, IterationState, LearnerState
from tasks.calling import direct
from tasks.checkpoints import save_checkpoint
from tasks.opening import close_run, open_run
from tasks.run import Run
from tasks.status import status_of
from tasks.stopping import stop_reason
from tasks.store import folder_of
from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench

AT = (20, 1_000, 10_000)
TIMED = 30
CONFIG = config_with(iterations=10**6, checkpoint={"every": 50}, evaluation={"every": 50})


def main() -> None:
    """Make the runs and print the table."""
    parser = argparse.ArgumentParser(description="Time iterations of short and long runs.")
    parser.add_argument("folder", nargs="?", type=Path, help="where the runs are made (default: a temporary folder)")
    parser.add_argument("--real", type=int, default=20, help="iterations that are really run, the others are written")
    parser.add_argument("--at", type=int, nargs="+", default=AT, help="lengths at which it is measured")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        table(arguments.folder or Path(temporary), arguments.at, real=arguments.real)


def table(folder: Path, lengths: list[int], *, real: int) -> None:
    """Print a row for each length of a run."""
    opened: list[tuple[int, Run, IterationState, str]] = []
    for length in lengths:
        bench = Bench(folder / f"run-{length}", CONFIG)
        _make(bench, length, real=real)
        opened.append((length, *_opened(bench)))
    spent: dict[int, list[tuple[float, float]]] = {length: [] for length in lengths}
    turns = [(length, _iterations(run, state)) for length, run, state, _ in opened]
    for _ in range(TIMED + 1):
        for length, turn in turns:
            spent[length].append(next(turn))
    for _, run, _, _ in opened:
        close_run(run)
    say("iterations | s an iteration, median (least) | CPU s | opening s | status s | files | MiB | resident MiB")
    for length, _, _, figures in opened:
        wall, processor = zip(*spent[length][1:], strict=True)
        own = f"{statistics.median(wall):.4f} ({min(wall):.4f}) | {statistics.median(processor):.4f}"
        say(f"{length} | {own} | {figures}")


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _opened(bench: Bench) -> tuple[Run, IterationState, str]:
    """The run, and how long it took to say where it stands and to open it."""
    started = time.perf_counter()
    found = status_of(bench.folder)
    status = time.perf_counter() - started
    assert found is not None
    started = time.perf_counter()
    run, state = open_run(bench.around(), "bench", CONFIG)
    opening = time.perf_counter() - started
    assert state is not None
    sizes = [path.stat().st_size for path in bench.folder.rglob("*") if path.is_file()]
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20
    return run, state, f"{opening:.2f} | {status:.2f} | {len(sizes)} | {sum(sizes) / 2**20:.0f} | {resident}"


def _iterations(run: Run, state: IterationState) -> Iterator[tuple[float, float]]:
    """Seconds of each iteration, by the clock and of the processor; what decides whether the run goes on included."""
    while True:
        started, worked = time.perf_counter(), time.process_time()
        state = iteration(run, state, direct(run))
        assert stop_reason(run.configs(state.iteration), run.commits) is None
        yield time.perf_counter() - started, time.process_time() - worked


def _make(bench: Bench, length: int, *, real: int) -> None:
    """A run of this length: its first iterations by itself, the others by commits like its last one."""
    bench.run(limit=min(length, real))
    run, _ = open_run(bench.around(), "bench", CONFIG)
    try:
        pattern = run.head
        for at in range(pattern.iteration + 1, length):
            _write_iteration(run, pattern, at)
        if run.head.iteration != pattern.iteration:
            _keep_state(bench, run)
    finally:
        close_run(run)


def _write_iteration(run: Run, pattern: Commit, at: int) -> None:
    source, folder = (Path(run.disk.local(folder_of(number))) for number in (pattern.iteration, at))
    folder.mkdir()
    for path in source.iterdir():
        if path.name != "commit.json":
            os.link(path, folder / path.name)
    entries = tuple(
        entry.model_copy(
            update={"iteration": at, "path": entry.path and f"{folder_of(at)}/{entry.path.rpartition('/')[2]}"}
        )
        for entry in pattern.entries
    )
    learner = LearnerState(version=at + 1, fingerprint=pattern.state.policy.fingerprint)
    commit = pattern.model_copy(
        update={
            "iteration": at,
            "entries": entries,
            "state": pattern.state.model_copy(update={"policy": learner}),
            "previous": run.head.sha256,
            "fencing_token": run.lease.token,
        }
    )
    for entry in entries:
        run.journal.event("making", stage=entry.stage, iteration=at, shard=entry.shard, key=entry.key, parts={})
    run.journal.metrics(at, dict(commit.summary))
    run.store.commit(commit)
    run.commits.append(commit)
    run.ledger.append(commit)
    run.journal.event("committed", iteration=at, sha256=commit.sha256, ledger_head=run.ledger.head)


def _keep_state(bench: Bench, run: Run) -> None:
    """A checkpoint of the head, whose weights are those of the last that ran."""
    engine = bench.engines[-1]
    engine.weights = run.head.state.policy.fingerprint.policy_sha256
    engine.steps = run.head.state.policy.fingerprint.optimizer_steps
    save_checkpoint(run, run.head.state)


if __name__ == "__main__":
    main()
