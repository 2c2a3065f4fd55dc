"""C-30: a figure that is infinite, one that is no number and one that there was none of are three things."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from papo.engines.requests import Update, UpdateResult
from papo.runs import open_run
from papo.spelling import number_of, spelled
from tasks.journal import Journal
from tasks.mlflow_names import numbers
from tests.simulation.engine import STATS, ScriptedEngine
from tests.simulation.world import SimClock
from tests.unit.tasks.bench import Bench

ODD = {"loss": math.inf, "grad_norm": math.nan, "kl_loss": -math.inf}
STANDARD = {"loss": "Infinity", "grad_norm": "NaN", "kl_loss": "-Infinity"}


def test_c_30_numbers_that_are_not_finite_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ScriptedEngine.update

    def update(self: ScriptedEngine, request: Update, progress: Any = None) -> UpdateResult:
        result = honest(self, request, progress)
        return UpdateResult(fingerprint=result.fingerprint, stats={**STATS, **ODD})

    monkeypatch.setattr(ScriptedEngine, "update", update)
    bench = Bench(tmp_path / "run")
    bench.run(limit=1)

    line = bench.disk.read("metrics.jsonl").splitlines()[-1]
    # Standard JSON: any other word than these is refused.
    written = json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))["values"]
    assert {name: written[f"update/{name}"] for name in ODD} == STANDARD
    assert "update/absent" not in written

    (read,) = [one["values"] for one in open_run(bench.folder).metrics() if one["iteration"] == 0]
    assert read["update/loss"] == math.inf
    assert read["update/kl_loss"] == -math.inf
    assert math.isnan(read["update/grad_norm"])
    assert read["update/rows"] == 1

    finite, skipped = numbers(written)
    assert skipped == sum(not isinstance(value, int | float) for value in written.values())
    assert not {f"update/{name}" for name in ODD} & finite.keys(), "MLflow would store infinity as 1.8e308"
    assert {bench.commits[-1].summary[f"update/{name}"] for name in ODD} == {None}, "a record has no word for them"


def test_c_30_what_was_recorded_before_a_crash_is_told_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The iteration is ended by another process than the one that did the update."""
    honest = ScriptedEngine.update

    def update(self: ScriptedEngine, request: Update, progress: Any = None) -> UpdateResult:
        return UpdateResult(fingerprint=honest(self, request, progress).fingerprint, stats={**STATS, **ODD})

    monkeypatch.setattr(ScriptedEngine, "update", update)
    finish = Journal.metrics

    def die(self: Journal, iteration: int, values: Any) -> None:
        if iteration == 0:
            raise KeyboardInterrupt
        finish(self, iteration, values)

    monkeypatch.setattr(Journal, "metrics", die)
    bench = Bench(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        bench.run(limit=1)
    monkeypatch.setattr(Journal, "metrics", finish)
    monkeypatch.setattr(ScriptedEngine, "update", honest)
    bench.run(limit=1)
    assert open_run(bench.folder).metrics()[-1]["values"]["update/loss"] == math.inf


@pytest.mark.parametrize("number", [0, 1.5, True, None, math.inf, -math.inf])
def test_every_number_comes_back(number: Any) -> None:
    assert number_of(json.loads(json.dumps(spelled(number), allow_nan=False))) is number or number == number_of(
        spelled(number)
    )


def test_a_string_that_spells_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="'nan' is no number"):
        number_of("nan")


def test_a_torn_line_of_metrics_is_passed_over(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    (tmp_path / "run").mkdir()
    journal = Journal(bench.disk, SimClock(), attempt=1)
    journal.metrics(0, {"loss": 1.0})
    journal.metrics(0, {"loss": math.nan})
    (bench.folder / "run.yaml").write_text("")
    with (bench.folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"iteration": 1, "time": 3, "values": {"loss": "Infin')
    (line,) = open_run(bench.folder).metrics()
    assert math.isnan(line["values"]["loss"])
