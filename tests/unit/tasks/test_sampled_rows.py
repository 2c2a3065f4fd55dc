"""A shard is of the rows that were asked for: what an engine gives beyond or beside them is refused."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.engines.requests import Generate
from papo.errors import EngineError
from tests.simulation.engine import ScriptedEngine
from tests.unit.tasks.bench import Bench


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda made: pl.concat([made, made[-1:]]), "group_id 1"),
        (lambda made: made.reverse(), "sample_index 0"),
        (lambda made: made.with_columns(sample_index=pl.col("sample_index") + 1), "sample_index 1"),
        (lambda made: made.with_columns(row_seed=pl.col("row_seed") + 1), "row_seed"),
        (lambda made: made.with_columns(policy_version=pl.col("policy_version") + 1), "policy_version 1"),
    ],
)
def test_c_27_rows_that_nobody_asked_for_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Any, named: str
) -> None:
    honest = ScriptedEngine.generate

    def generate(self: ScriptedEngine, request: Generate, progress: Any = None) -> None:
        honest(self, request, progress)
        made = self._read(request.output)
        self._write(request.output, spoil(made))

    monkeypatch.setattr(ScriptedEngine, "generate", generate)
    with pytest.raises(EngineError, match=rf"{named}.*(that is not the next of the)"):
        Bench(tmp_path / "run").run()


def test_a_lost_row_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ScriptedEngine.generate

    def generate(self: ScriptedEngine, request: Generate, progress: Any = None) -> None:
        honest(self, request, progress)
        self._write(request.output, self._read(request.output)[:1])

    monkeypatch.setattr(ScriptedEngine, "generate", generate)
    bench = Bench(tmp_path / "run")
    bench.run()
    assert bench.commits[-1].summary["lost"] == 2
