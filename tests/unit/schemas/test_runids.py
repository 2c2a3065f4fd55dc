"""Run ids: one rule, said wherever an id comes from."""

from pathlib import Path

import pytest

from flows.build import Places, open_from
from papo.errors import ConfigError
from schemas.runids import LONGEST, checked_run_id, run_id_of
from tests.simulation.world import Silent

GOOD = ["a", "7", "arithmetic", "run.v2_b-3", "A" * LONGEST, "smollm2-gsm8k"]
BAD = [
    "", ".", "..", "../escape", "a/b", "/srv/a", "a/", ".prefect", "-x", "_x", "a b", "a\n", "a\0b", "é", "a:b", "a\\b",
    "~", "*", "A" * (LONGEST + 1), "x" * 300, "mlflow.db", "mlartifacts", "MLartifacts",
]  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_name_of_letters_digits_and_three_marks_is_an_id(name: str) -> None:
    assert checked_run_id(name) == name
    assert Places(runs=Path("runs")).run(name) == Path("runs") / name


@pytest.mark.parametrize("name", BAD)
def test_c_12_no_other_name_becomes_a_path(name: str) -> None:
    """C-12: the error says the rule, the id and one that would do."""
    with pytest.raises(ConfigError) as caught:
        Places(runs=Path("runs")).run(name)
    told = str(caught.value)
    assert "1 to 100 letters (a-z, A-Z), digits, '.', '_' or '-'" in told
    assert len(told) < 500
    assert "\n" not in told
    assert "\0" not in told
    if name.lower() not in ("mlflow.db", "mlartifacts"):
        assert checked_run_id(told.split("such as '")[1].split("'", maxsplit=1)[0])


@pytest.mark.parametrize(("name", "near"), [("../escape", "escape"), ("a/b", "b"), ("-x", "x"), ("my run", "my-run")])
def test_the_id_that_is_proposed_is_near(name: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"such as '{near}'"):
        checked_run_id(name)


def test_an_id_made_of_a_file_name_is_held_to_the_rule_as_well() -> None:
    assert run_id_of("configs/a.v2.yaml", None) == "a.v2"
    assert run_id_of("configs/my run.yaml", "mine") == "mine"
    with pytest.raises(
        ConfigError, match=r"'my run' is no run id \(it is the name of configs/my run.yaml; give .*--run-id"
    ):
        run_id_of("configs/my run.yaml", None)
    with pytest.raises(ConfigError, match="is no run id"):
        run_id_of("configs/a.yaml", "")


def test_c_12_nothing_is_created_for_an_id_that_is_none(tmp_path: Path) -> None:
    for run_id in ("../escape", ".prefect", "x" * 300):
        with pytest.raises(ConfigError, match="is no run id"):
            open_from(None, run_id=run_id, reporter=Silent(), places=Places(runs=tmp_path / "runs"))
        with pytest.raises(ConfigError, match="is no run id"):
            open_from("nowhere.yaml", run_id=run_id, reporter=Silent(), places=Places(runs=tmp_path / "runs"))
    assert not list(tmp_path.iterdir())
