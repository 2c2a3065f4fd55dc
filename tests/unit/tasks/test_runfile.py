"""run.yaml: what a run is, what may change of it at a resume, and what is refused by name."""

from pathlib import Path
from typing import Any

import pytest

from papo.errors import ConfigError, Damaged, DataError
from schemas.config import RunConfig
from tasks.disk import LocalDisk
from tasks.runfile import (
    PATH,
    RunFile,
    check_sources,
    create_run_file,
    differences,
    epoch,
    read_run_file,
    with_config,
    write_run_file,
)


def config(**patch: Any) -> RunConfig:
    usual: dict[str, Any] = {
        "data": {"train": {"kind": "file", "path": "rows.jsonl"}},
        "model": {"path": "somewhere"},
        "reward": {"outcome": {"kind": "answer_match"}},
        "scorer": {"kind": "chain_rubric"},
    }
    return RunConfig.model_validate(usual | patch)


def run_file(begun: RunConfig | None = None, **patch: Any) -> RunFile:
    fields: dict[str, Any] = {
        "run_id": "x",
        "base": "configs",
        "model": "somewhere",
        "sources": {"train": "0" * 64},
        "epochs": (epoch(begun or config(), since=0),),
    }
    return RunFile(**fields | patch)


def test_a_run_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    begun = run_file(config(seed=3, optimizer={"learning_rate": 1e-6}))

    assert read_run_file(disk) is None
    assert create_run_file(disk, begun) == begun
    assert read_run_file(disk) == begun
    assert begun.config_at(0) == config(seed=3, optimizer={"learning_rate": 1e-6})
    assert begun.epochs[0].config_sha256 == begun.config_at(0).sha256


def test_the_first_run_file_holds(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    first, second = run_file(), run_file(config(seed=1))

    create_run_file(disk, first)

    assert create_run_file(disk, second) == first
    write_run_file(disk, second)
    assert read_run_file(disk) == second


@pytest.mark.parametrize("text", ["run_id: [", "run_id: x\n", "run_id: x\nsurplus: 1\n", ""])
def test_a_damaged_run_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / PATH).write_text(text)

    with pytest.raises(Damaged, match=r"run\.yaml cannot be read"):
        read_run_file(LocalDisk(tmp_path))


def test_the_same_config_changes_nothing() -> None:
    begun = run_file()

    assert with_config(begun, config(), head=4, amend=False) is begun


def test_horizon_and_operation_may_change_at_any_resume() -> None:
    begun = run_file()
    longer = config(
        iterations=99,
        engine={"device": "cpu"},
        checkpoint={"every": 2},
        data={"train": {"kind": "file", "path": "moved.jsonl"}},
    )

    changed = with_config(begun, longer, head=4, amend=False)

    assert len(changed.epochs) == 1
    assert changed.config_at(0) == longer
    assert changed.epochs[0].config_sha256 == begun.epochs[0].config_sha256


@pytest.mark.parametrize(
    ("amend", "parts", "named"),
    [
        (False, {"model": {"path": "elsewhere"}}, "model"),
        (True, {"sampling": {"max_prompt_length": 7}}, "sampling.max_prompt_length"),
        (True, {"data": {"train": {"kind": "file", "path": "rows.jsonl", "take": 3}}}, "data.train.take"),
    ],
)
def test_what_the_start_used_up_is_refused(amend: bool, parts: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=f"{named} cannot be changed for run x"):
        with_config(run_file(), config(**parts), head=4, amend=amend)


def test_another_identity_is_refused_with_each_field() -> None:
    other = config(seed=5, sampling={"temperature": 0.5}, scorer={"kind": "equation_lines"}, iterations=99)

    with pytest.raises(ConfigError) as raised:
        with_config(run_file(), other, head=4, amend=False)

    message = str(raised.value)
    assert "seed: 0 in the run, 5 now" in message
    assert "sampling.temperature: 1.0 in the run, 0.5 now" in message
    assert "scorer.kind: 'chain_rubric' in the run, 'equation_lines' now" in message
    assert "iterations:" not in message
    (way_out,) = raised.value.ways_out
    assert (way_out.command, way_out.arguments) == ("resume", ("x",))
    assert dict(way_out.options).keys() == {"--amend"}


@pytest.mark.parametrize(
    ("algorithm", "named"),
    [
        ({"advantage": {"kind": "gae"}}, "would hold a policy, a critic instead of a policy"),
        ({"advantage": {"kind": "papo"}, "use_kl_loss": True}, "would hold a policy, a reference instead of a policy"),
    ],
)
def test_an_amendment_cannot_ask_for_models_that_were_not_opened(algorithm: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        with_config(run_file(), config(algorithm=algorithm), head=1, amend=True)


def test_an_amendment_holds_from_the_next_iteration_on() -> None:
    amended = with_config(run_file(), config(seed=5), head=4, amend=True)

    assert [since.since for since in amended.epochs] == [0, 5]
    assert [amended.config_at(iteration).seed for iteration in (-1, 0, 4, 5, 9)] == [0, 0, 0, 5, 5]
    assert amended.latest.seed == 5


def test_an_amendment_of_what_has_not_run_yet_replaces_it() -> None:
    once = with_config(run_file(), config(seed=5), head=4, amend=True)

    twice = with_config(once, config(seed=6), head=4, amend=True)

    assert [(since.since, since.config["seed"]) for since in twice.epochs] == [(0, 0), (5, 6)]
    assert [since.since for since in with_config(run_file(), config(seed=6), head=-1, amend=True).epochs] == [0]


def test_a_new_horizon_after_an_amendment_leaves_history_alone() -> None:
    amended = with_config(run_file(), config(seed=5), head=4, amend=True)

    longer = with_config(amended, config(seed=5, iterations=99), head=7, amend=False)

    assert longer.epochs[0] == amended.epochs[0]
    assert longer.config_at(8).iterations == 99
    with pytest.raises(ConfigError, match="seed: 5 in the run, 0 now"):
        with_config(longer, config(), head=7, amend=False)


def test_changed_data_are_refused_by_name() -> None:
    begun = run_file(sources={"train": "a" * 64, "evaluation": "b" * 64})

    check_sources(begun, {"train": "a" * 64, "evaluation": "b" * 64}, {})
    with pytest.raises(DataError, match=r"data\.evaluation \(test\.jsonl\) has changed since run x began.*cccc.*bbbb"):
        check_sources(begun, {"train": "a" * 64, "evaluation": "c" * 64}, {"evaluation": "test.jsonl"})
    with pytest.raises(DataError, match=r"data\.evaluation"):
        check_sources(begun, {"train": "a" * 64}, {})


def test_differences_are_the_leaves_that_differ() -> None:
    before = {"a": 1, "b": {"c": [1], "d": None}, "e": {"f": 1}}
    after = {"a": 1, "b": {"c": [1, 2], "d": {"x": 1}}, "e": {"f": 1}, "g": True}

    assert differences(before, after) == [("b.c", [1], [1, 2]), ("b.d", None, {"x": 1}), ("g", None, True)]
    assert differences(before, before) == []


def test_a_new_horizon_after_an_amendment_that_has_not_run_yet_leaves_history_alone() -> None:
    amended = with_config(run_file(), config(seed=5), head=4, amend=True)
    longer = with_config(amended, config(seed=5, iterations=99), head=4, amend=False)
    assert [longer.config_at(iteration).seed for iteration in (0, 4, 5)] == [0, 0, 5]
    assert longer.latest.iterations == 99


def test_another_number_of_ranks_holds_from_the_next_iteration_on() -> None:
    """It changes no identity, but the order of sums: the run file keeps both."""
    two = with_config(run_file(), config(engine={"ranks": 2}), head=4, amend=False)
    assert [two.config_at(iteration).engine.ranks for iteration in (0, 4, 5)] == [1, 1, 2]
    assert two.epochs[0].config_sha256 == two.epochs[1].config_sha256
    assert with_config(two, config(), head=4, amend=False).config_at(5).engine.ranks == 1
