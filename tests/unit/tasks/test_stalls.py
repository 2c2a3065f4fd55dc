"""C-08: an engine that stalls is an alarm and one new start a stage with twice the time; then the run stops."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from papo.errors import EngineStalled
from tasks.lock import BEAT_SECONDS, FileLease
from tasks.pace import Pace
from tasks.status import status_of
from tests.simulation.engine import ScriptedEngine
from tests.simulation.world import Silent, config_with
from tests.unit.tasks.bench import Bench


class Told(Silent):
    def __init__(self) -> None:
        self.messages: list[str] = []

    def message(self, text: str) -> None:
        self.messages.append(text)


def stalling(bench: Bench, *stall_in: int) -> Any:
    def engine(settings: Any) -> ScriptedEngine:
        made = ScriptedEngine(bench.disk)
        made.stall_in = list(stall_in)
        bench.engines.append(made)
        return made

    return engine


@pytest.fixture
def straight(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path / "straight")
    bench.run()
    return bench


def test_one_stall_a_stage_is_an_alarm_and_the_run_is_the_same(tmp_path: Path, straight: Bench) -> None:
    bench, told = Bench(tmp_path / "run"), Told()
    bench.run(engine=stalling(bench, 4, 8), reporter=told)
    assert bench.hashes() == straight.hashes()
    assert [event["times"] for event in bench.events("stalled")] == [1, 1]
    assert len([text for text in told.messages if text.startswith("ALARM: in ")]) == 2
    assert bench.events("engine_died") == []


def test_a_second_stall_in_a_stage_stops_the_run_which_can_be_resumed(tmp_path: Path, straight: Bench) -> None:
    bench = Bench(tmp_path / "run")
    with pytest.raises(EngineStalled) as caught:
        bench.run(engine=stalling(bench, 9, 0))
    assert caught.value.exit_code == 3
    assert [event["times"] for event in bench.events("stalled")] == [1, 2]
    assert bench.engines[-1].allowed == [600.0, 1200.0]
    bench.run()
    assert bench.hashes() == straight.hashes()


def test_the_floor_is_a_setting(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", config_with(engine={"stall_seconds": 5.0}))
    bench.run(engine=stalling(bench, 6))
    assert bench.engines[-1].allowed == [5.0]
    assert bench.engines[-1].silence_seconds >= 5.0


def test_a_stage_that_is_usually_long_may_be_silent_for_longer() -> None:
    pace = Pace()
    for seconds in (300.0, 400.0, 5000.0):
        pace.note({"generate": seconds, "update": 1.0})
    assert pace.silence_limit("generate", floor=600.0) == 1200.0
    assert pace.silence_limit("update", floor=600.0) == 600.0
    assert pace.silence_limit("never seen", floor=600.0) == 600.0


def test_the_pace_is_what_the_runs_own_journal_says(straight: Bench) -> None:
    with (straight.folder / "metrics.jsonl").open("a") as journal:
        for iteration in range(3, 60):
            journal.write(json.dumps({"iteration": iteration, "time": 0.0, "values": {"seconds/update": 900.0}}) + "\n")
        journal.write('{"iteration": 99, "values": {"seconds/upd')
    assert Pace.read(straight.disk).silence_limit("update", floor=1.0) == 2700.0


def test_status_says_since_when_nothing_moved(straight: Bench) -> None:
    idle = status_of(straight.folder)
    assert idle is not None
    assert idle.progress_age is None
    lease = FileLease(straight.folder / "lock")
    try:
        an_hour_ago = time.time() - 3600
        os.utime(straight.folder / "lock", (an_hour_ago, an_hour_ago))
        stuck = status_of(straight.folder)
        assert stuck is not None
        assert stuck.progress_age == pytest.approx(3600, abs=60)
        lease.beat()
        moving = status_of(straight.folder)
        assert moving is not None
        assert moving.progress_age is not None
        assert moving.progress_age < 60
    finally:
        lease.release()


def test_a_beat_changes_no_byte_and_comes_at_most_once_a_while(tmp_path: Path) -> None:
    lease = FileLease(tmp_path / "lock")
    content = (tmp_path / "lock").read_bytes()
    lease.beat()
    os.utime(tmp_path / "lock", (1.0, 1.0))
    lease.beat()
    assert (tmp_path / "lock").stat().st_mtime == 1.0
    lease._beaten -= BEAT_SECONDS
    lease.beat()
    assert (tmp_path / "lock").stat().st_mtime > 1.0
    assert (tmp_path / "lock").read_bytes() == content
    lease.release()
