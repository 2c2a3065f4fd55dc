"""A run is the folder that was named, under the config that its commits were made under."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from papo.errors import ConfigError, PapoError, StoreError
from schemas.canonical import sha256_of
from schemas.config import RunConfig
from tasks.opening import close_run, open_run
from tasks.runfile import FORMAT, check_stored_configs, read_run_file, stored_sha256
from tasks.status import all_runs, status_of
from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench


def opened_as(bench: Bench, run_id: str, config: RunConfig | None = None, **changes: Any) -> None:
    run, _ = open_run(bench.around(**changes), run_id, config)
    close_run(run)


def edited(bench: Bench, change: Any, *, rehashed: bool = True) -> None:
    """Edit run.yaml by hand, as somebody does who knows of its sha256."""
    path = bench.folder / "run.yaml"
    fields = yaml.safe_load(path.read_text())
    change(fields)
    if rehashed:
        fields.pop("sha256")
        fields["sha256"] = sha256_of(fields)
    path.write_text(yaml.safe_dump(fields, sort_keys=False))


def test_c_01_a_copy_is_advanced_in_place_and_says_whose_copy_it_is(paused: Bench, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in paused.paths("**/*") if path.is_file()}
    copy = paused.copy(tmp_path / "copy")
    opened_as(copy, "copy")
    run_file = read_run_file(copy.disk)
    assert run_file is not None
    assert (run_file.run_id, run_file.origin) == ("copy", ("bench",))
    assert (copy.events("opened")[-1]["run_id"], copy.events("opened")[-1]["origin"]) == ("copy", ["bench"])
    assert "copy of run bench" in copy.events("noted")[-1]["text"]
    assert {path: path.read_bytes() for path in before} == before

    again = copy.copy(tmp_path / "again")
    opened_as(again, "again")
    opened_as(again, "again")
    run_file = read_run_file(again.disk)
    assert run_file is not None
    assert run_file.origin == ("bench", "copy")


def test_c_01_status_goes_by_the_folder_and_tells_copies_apart(paused: Bench, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    paused.copy(runs / "bench")
    shutil.copytree(runs / "bench", runs / "copied")
    assert [(found.run_id, found.origin) for found in all_runs(runs)] == [("bench", None), ("copied", "bench")]
    opened_as(Bench(runs / "copied"), "copied")
    assert [(found.run_id, found.origin) for found in all_runs(runs)] == [("bench", None), ("copied", "bench")]
    (runs / "link").symlink_to("bench")
    assert [(found.run_id, found.origin) for found in all_runs(runs)][-1] == ("link", None)


def test_c_01_two_copies_end_as_the_original(paused: Bench, tmp_path: Path) -> None:
    """The seeds come from the config, not from the name."""
    one, other = paused.copy(tmp_path / "one"), paused.copy(tmp_path / "other")
    opened_as(one, "one")
    paused.run()
    one.run()
    other.run()
    assert one.hashes() == other.hashes() == paused.hashes()


def test_a_link_and_another_spelling_are_no_rename(paused: Bench) -> None:
    opened_as(paused, "link", is_called=lambda name: name == "bench")
    run_file = read_run_file(paused.disk)
    assert run_file is not None
    assert (run_file.run_id, run_file.origin) == ("bench", ())


def test_c_04_a_lost_run_file_beside_commits_is_refused(paused: Bench) -> None:
    (paused.folder / "run.yaml").unlink()
    with pytest.raises(StoreError, match=r"run.yaml is gone, but iterations are committed"):
        paused.run()
    paused.config = config_with(seed=77)
    with pytest.raises(StoreError, match=r"run.yaml is gone, but iterations are committed"):
        paused.run()
    assert not (paused.folder / "run.yaml").exists()


def test_c_04_a_run_file_of_another_run_is_refused(paused: Bench, tmp_path: Path) -> None:
    other = Bench(tmp_path / "other", config_with(seed=77))
    other.run(limit=1)
    shutil.copy(other.folder / "run.yaml", paused.folder / "run.yaml")
    paused.config = other.config
    with pytest.raises(StoreError, match=r"was committed under the config .* but run.yaml has"):
        paused.run()


def test_c_04_an_edit_with_its_own_hash_recomputed_is_refused(paused: Bench) -> None:
    def rate(fields: dict[str, Any]) -> None:
        fields["epochs"][0]["config"]["optimizer"]["learning_rate"] = 0.5

    edited(paused, rate)
    with pytest.raises(StoreError, match="its config from iteration 0 on hashes to"):
        opened_as(paused, "bench")

    def hashes(fields: dict[str, Any]) -> None:
        fields["epochs"][0]["config_sha256"] = stored_sha256(fields["epochs"][0]["config"])

    edited(paused, hashes)
    with pytest.raises(StoreError, match=r"was committed under the config .* but run.yaml has"):
        opened_as(paused, "bench")


def test_c_04_a_field_that_a_later_release_adds_refuses_no_old_run(
    paused: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's hash stays what was recorded, in what is committed from now on too."""
    recorded = paused.commits[-1].config_sha256
    identity = RunConfig.identity.fget
    assert identity is not None

    def with_more(self: RunConfig) -> dict[str, Any]:
        found = identity(self)
        return {**found, "added": 1, "sampling": {**found["sampling"], "added_too": None}}

    monkeypatch.setattr(RunConfig, "identity", property(with_more))
    assert paused.config.sha256 != recorded
    run_file = read_run_file(paused.disk)
    assert run_file is not None
    check_stored_configs(run_file)
    paused.config = paused.config.model_copy(update={"gap_alarm": 0.2})
    paused.run()
    assert {commit.config_sha256 for commit in paused.commits} == {recorded}
    paused.run()
    found = status_of(paused.folder)
    assert found is not None
    assert found.config_sha256 == recorded


def test_a_newer_format_is_refused_by_name_and_an_older_one_is_read(paused: Bench) -> None:
    edited(paused, lambda fields: fields.update(format=FORMAT + 1, papo="9.9", surplus={"a": 1}))
    before = (paused.folder / "run.yaml").read_bytes()
    with pytest.raises(StoreError, match=rf"of format {FORMAT + 1} \(papo 9.9 began it\).*knows formats 1 to {FORMAT}"):
        opened_as(paused, "bench")
    with pytest.raises(StoreError, match="of format"):
        status_of(paused.folder)
    assert (paused.folder / "run.yaml").read_bytes() == before

    def first(fields: dict[str, Any]) -> None:
        for name in ("format", "papo", "origin", "near", "surplus"):
            fields.pop(name, None)

    edited(paused, first)
    paused.run()
    assert paused.events("opened")[-1]["format"] == 1


def test_the_release_is_in_the_run_file_and_in_each_opening(done: Bench) -> None:
    run_file = read_run_file(done.disk)
    assert run_file is not None
    assert run_file.papo
    assert {event["papo"] for event in done.events("opened")} == {run_file.papo}


@pytest.mark.parametrize(
    "changes",
    [
        {"sampling": {"num_generations": 2, "max_prompt_length": 32, "max_completion_length": 4}},
        {"seed": 9},
        {"model": {"path": "elsewhere"}},
    ],
)
def test_c_10_before_anything_is_committed_another_config_is_simply_taken(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    straight = Bench(tmp_path / "straight", config_with(**changes))
    straight.run()
    bench = Bench(tmp_path / "run")
    bench.folder.mkdir()
    opened_as(bench, "bench", bench.config)
    bench.config = straight.config
    bench.run()
    assert bench.hashes() == straight.hashes()


def test_c_10_a_model_that_changed_before_anything_was_committed_is_kept_as_it_is_now(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    bench.folder.mkdir()
    opened_as(bench, "bench", bench.config)
    (bench.folder / "exports/00000").mkdir()
    opened_as(bench, "bench", model=lambda config: ("elsewhere", {"tokenizer.json": b'{"a": 1}'}))
    assert (bench.folder / "model/tokenizer.json").read_bytes() == b'{"a": 1}'
    assert not (bench.folder / "exports/00000").exists()


def test_data_that_are_gone_are_missed_before_the_genesis_and_not_after_it(paused: Bench, tmp_path: Path) -> None:
    paused.run(remaining=lambda config: {})
    assert sum("is not there any more" in event["text"] for event in paused.events("noted")) == 2
    assert json.loads((paused.folder / "iterations/00002/commit.json").read_text())["iteration"] == 2


def test_a_config_that_this_release_does_not_take_is_named(paused: Bench) -> None:
    edited(paused, lambda fields: fields["epochs"][0]["config"].update(unheard_of=1))
    with pytest.raises(PapoError, match=r"unheard_of.*Use the papo that advanced it last") as caught:
        opened_as(paused, "bench")
    assert not isinstance(caught.value, ConfigError | ValidationError)
