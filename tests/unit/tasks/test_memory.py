"""Memory that runs out: the run goes on with smaller micro-batches, and its record says so."""

from pathlib import Path
from typing import Any

import pytest

from papo.errors import OutOfMemory
from tests.simulation.engine import STATS, ScriptedEngine
from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench


def test_ranks_that_run_out_of_memory_are_started_until_the_rows_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More often than an engine may die: each time there are half as many rows in a micro-batch."""
    straight = Bench(tmp_path / "straight", config_with(iterations=2))
    straight.run()
    update, left = ScriptedEngine.update, [4]

    def spent(engine: ScriptedEngine, *arguments: Any) -> Any:
        if left[0]:
            left[0] -= 1
            engine.close()
            raise OutOfMemory("CUDA out of memory")
        return update(engine, *arguments)

    monkeypatch.setattr(ScriptedEngine, "update", spent)
    bench = Bench(tmp_path / "run", config_with(iterations=2))
    bench.run()
    assert len(bench.events("out_of_memory")) == 4
    assert bench.events("engine_died") == []
    assert bench.hashes() == straight.hashes()


def test_an_update_that_halved_its_micro_batches_is_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STATS, "micro_batch_size", 16)
    bench = Bench(tmp_path / "run", config_with(iterations=2))
    bench.run()
    assert [(line["iteration"], line["micro_batch_size"]) for line in bench.events("out_of_memory")] == [
        (0, 16),
        (1, 16),
    ]
