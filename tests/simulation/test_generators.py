"""A run whose generator is not the learner: when it is synced, what its death does, which keys it leaves."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from flows.iteration import advance
from papo.engines.generators import Embedded, Synced
from papo.engines.protocol import Engine, Progress
from papo.engines.requests import Generate
from papo.errors import GeneratorDied
from schemas.config import RunConfig
from tasks.calling import direct
from tasks.opening import close_run, open_run
from tasks.run import Run
from tests.simulation.disk import Faults, SimDisk
from tests.simulation.engine import STATS
from tests.simulation.world import Machine, config_with, undisturbed

LOSSY = "rollouts-0000.parquet"


class Recorder(Embedded):
    """Asks the learner, and writes down what it was asked itself."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.weights: str | None = None
        self.deaths = 0
        self.loses: int | None = None
        """The row that each training shard loses."""

    def sync(self, engine: Engine, request: Generate) -> Synced | None:
        assert engine.held is not None
        self.calls.append("sync")
        if self.weights == engine.held.policy_sha256:
            return None
        self.weights = engine.held.policy_sha256
        return Synced(
            policy_sha256=self.weights,
            export_sha256="",
            seconds=0.0,
            start_seconds=0.0,
            probe_gap_mean=0.0,
            probe_gap_max=0.0,
            servers=(),
        )

    def generate(self, engine: Engine, request: Generate, progress: Progress | None = None) -> tuple[str, ...]:
        assert engine.held is not None
        assert self.weights == engine.held.policy_sha256, "rows of another policy"
        self.calls.append("generate")
        if self.deaths:
            self.deaths -= 1
            self.weights = None
            raise GeneratorDied("no server is left")
        if self.loses is None or not request.output.endswith(LOSSY):
            return super().generate(engine, request, progress)
        kept = tuple(row for index, row in enumerate(request.rows) if index != self.loses)
        super().generate(engine, replace(request, rows=kept), progress)
        return ("row is lost",)

    def rest(self) -> None:
        self.calls.append("rest")

    def close(self) -> None:
        self.calls.append("close")
        self.weights = None


def run_with(generator: Recorder, config: RunConfig, disk: SimDisk | None = None, **limits: Any) -> Run:
    disk = disk or SimDisk(Random(0), Faults())
    machine = Machine(config=config)
    run, state = open_run(replace(machine.surroundings(disk), generator=lambda _: generator), "sim", config)
    try:
        advance(run, state, direct(run), **limits)
        return run
    finally:
        close_run(run)


def keys(run: Run, stage: str) -> list[str]:
    return [entry.key for commit in run.commits for entry in commit.entries if entry.stage == stage]


def test_an_embedded_run_has_the_keys_it_always_had_and_vllm_has_its_own() -> None:
    _, plain = undisturbed()
    explicit = run_with(Recorder(), config_with(generator={"kind": "embedded"}))
    served = run_with(Recorder(), config_with(generator={"kind": "vllm"}))

    assert [commit.sha256 for commit in explicit.commits] == [commit.sha256 for commit in plain.commits]
    for stage in ("generate", "evaluate"):
        assert not set(keys(served, stage)) & set(keys(plain, stage))
    assert keys(served, "sample") == keys(plain, "sample")


def test_bug_048_a_resumed_run_syncs_before_its_first_row() -> None:
    disk, config = SimDisk(Random(0), Faults()), config_with(generator={"kind": "vllm"})
    run_with(Recorder(), config, disk, limit=2)
    resumed = Recorder()

    run_with(resumed, config, disk)

    assert resumed.calls.index("sync") < resumed.calls.index("generate")


def test_servers_rest_before_every_update() -> None:
    generator = Recorder()
    run_with(generator, config_with(generator={"kind": "vllm"}))

    assert generator.calls.count("rest") == 3
    for place, call in enumerate(generator.calls):
        if call == "rest":
            assert generator.calls[place + 1] in ("sync", "close")


def test_a_generator_that_dies_is_started_again_once_and_the_learner_is_left_alone() -> None:
    config = config_with(generator={"kind": "vllm"})
    whole = run_with(Recorder(), config)
    generator = Recorder()
    generator.deaths = 1

    run = run_with(generator, config)

    assert [commit.sha256 for commit in run.commits] == [commit.sha256 for commit in whole.commits]
    assert generator.calls[:4] == ["sync", "generate", "close", "sync"]
    generator = Recorder()
    generator.deaths = 2
    with pytest.raises(GeneratorDied):
        run_with(generator, config)


@pytest.mark.parametrize(("limit", "alarms"), [(0.1, 3), (0.3, 0), (None, 0)])
def test_bug_051_a_gap_above_the_limit_raises_the_alarm(
    limit: float | None, alarms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STATS, "sampler_logprob_gap_mean", 0.2)
    disk = SimDisk(Random(0), Faults())

    run_with(Recorder(), config_with(gap_alarm=limit), disk)

    assert disk.read("events.jsonl").count(b'"sampler_gap"') == alarms


def test_bug_070_an_iteration_goes_on_without_a_lost_row_and_names_it() -> None:
    disk, generator = SimDisk(Random(0), Faults()), Recorder()
    generator.loses = 1

    run = run_with(generator, config_with(generator={"kind": "vllm"}), disk)

    whole = run_with(Recorder(), config_with(generator={"kind": "vllm"}))
    rollouts = [commit.summary["rollouts"] for commit in whole.commits[1:]]
    assert [commit.summary["rollouts"] for commit in run.commits[1:]] == [(count or 0) - 1 for count in rollouts]
    assert [commit.summary["lost"] for commit in run.commits[1:]] == [1, 1, 1]
    assert all("lost" not in commit.summary for commit in whole.commits)
    assert disk.read("events.jsonl").count(b"row is lost") == 3
