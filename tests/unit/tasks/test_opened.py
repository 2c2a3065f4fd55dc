"""From where the models beside the policy are opened."""

from pathlib import Path
from typing import Any

import pytest

from papo.engines.requests import Fingerprint, Open
from tasks.holding import opened
from tasks.run import Run
from tests.simulation.engine import ScriptedEngine
from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench

CRITIC = {"algorithm": {"advantage": {"kind": "gae"}}}


@pytest.mark.parametrize("named", [False, True])
def test_a_critic_starts_from_the_folder_that_the_config_names_else_from_the_policys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """A relative path is relative to the config, whatever folder the run is resumed from."""
    (tmp_path / "judge").mkdir()
    asked: list[Open] = []
    real = ScriptedEngine.open

    def noted(self: ScriptedEngine, request: Open) -> Fingerprint:
        asked.append(request)
        return real(self, request)

    monkeypatch.setattr(ScriptedEngine, "open", noted)
    critic: dict[str, Any] = {"critic": {"path": "judge"}} if named else {}
    bench = Bench(tmp_path / "run", config_with(**CRITIC, **critic))
    bench.run(limit=1)

    def ask(run: Run) -> None:
        run.base = str(tmp_path)
        opened(run, model="somewhere")

    bench.opened(ask)
    assert asked[-1].critic == (str(tmp_path / "judge") if named else "somewhere")
