"""A flipped byte, a cut file, a lost or swapped row: each ends in an exact recovery or in one error that names it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from papo.errors import Damaged, LedgerMismatch, PapoError, StoreError
from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench, cut, flip

Damage = Callable[[Path], None]
BOTH = pytest.mark.parametrize("damage", [flip, cut])


@pytest.fixture(scope="session")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], bytes]:
    bench = Bench(tmp_path_factory.mktemp("straight") / "run")
    bench.run()
    return bench.hashes()


def refused(bench: Bench, kind: type[PapoError], *named: str) -> None:
    """The start says what is damaged and what to do, and changes nothing that was there but lock and journal."""
    before = files_of(bench)
    with pytest.raises(kind) as caught:
        bench.run()
    for word in (*named, "estore", "cop"):
        assert word in str(caught.value)
    after = files_of(bench)
    assert {path: after.get(path) for path in before} == before


def files_of(bench: Bench) -> dict[Path, bytes]:
    kept = (path for path in bench.paths("**/*") if path.is_file() and path.name not in ("lock", "events.jsonl"))
    return {path: path.read_bytes() for path in kept}


def lose_committed_update(bench: Bench) -> None:
    """Leave only the checkpoint of version 0, so that the committed updates have to be replayed."""
    for path in bench.paths("checkpoints/*"):
        if path.name != "00000":
            shutil.rmtree(path)


@BOTH
@pytest.mark.parametrize(
    ("stage", "file"), [("generate", "rollouts"), ("advantage", "advantages"), ("sample", "prompts")]
)
def test_a_damaged_artifact_that_a_replay_needs_is_named(paused: Bench, damage: Damage, stage: str, file: str) -> None:
    lose_committed_update(paused)
    path = paused.paths(f"iterations/00001/{file}-*.parquet")[0]
    damage(path)
    refused(paused, Damaged, str(path.relative_to(paused.folder)), "was published as", "start a new run")


def test_a_missing_artifact_that_a_replay_needs_is_named(paused: Bench) -> None:
    lose_committed_update(paused)
    path = paused.paths("iterations/00000/rollouts-*.parquet")[0]
    path.unlink()
    refused(paused, Damaged, f"iterations/00000/{path.name} is missing")


def uncommitted(bench: Bench) -> Bench:
    """Take the last iteration's end away, as if the machine had died just before its commit."""
    newest = bench.paths("iterations/[0-9]*")[-1]
    rows = (bench.folder / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    last = len(bench.commits[-1].entries) + 1
    (bench.folder / "ledger.jsonl").write_bytes(b"".join(rows[:-last]))
    (newest / "commit.json").unlink()
    shutil.rmtree(bench.paths("checkpoints/*")[-1])
    return bench


@BOTH
@pytest.mark.parametrize("file", ["rollouts", "outcomes", "scores", "advantages"])
def test_a_damaged_artifact_of_the_open_iteration_is_made_again(
    paused: Bench, straight: tuple[list[str], bytes], damage: Damage, file: str
) -> None:
    path = uncommitted(paused).paths(f"iterations/00001/{file}-*.parquet")[0]
    whole = path.read_bytes()
    damage(path)
    paused.run()
    assert path.read_bytes() == whole
    assert paused.hashes() == straight


@BOTH
@pytest.mark.parametrize("stage", ["generate", "advantage"])
def test_a_damaged_sidecar_of_the_open_iteration_is_set_aside(
    paused: Bench, straight: tuple[list[str], bytes], damage: Damage, stage: str
) -> None:
    path = uncommitted(paused).paths(f"iterations/00001/{stage}-*.json")[0]
    damage(path)
    paused.run()
    assert path.with_name(f"damaged-{path.name}").exists()
    assert paused.hashes() == straight


@BOTH
def test_a_damaged_record_of_a_committed_update_is_named(paused: Bench, damage: Damage) -> None:
    lose_committed_update(paused)
    path = paused.paths("iterations/00000/update-*.json")[0]
    damage(path)
    with pytest.raises(StoreError, match=r"update-0000-(.|\n)*Restore"):
        paused.run()


@BOTH
@pytest.mark.parametrize("iteration", ["genesis", "00000", "00001"])
def test_a_damaged_commit_is_found_at_the_next_start(paused: Bench, damage: Damage, iteration: str) -> None:
    path = paused.folder / "iterations" / iteration / "commit.json"
    damage(path)
    refused(paused, StoreError, "start a new run")


@pytest.mark.parametrize("field", [b'"policy_sha256":"', b'"output_sha256":"', b'"config_sha256":"'])
def test_a_hash_changed_in_the_last_commit_is_found_by_the_ledger(paused: Bench, field: bytes) -> None:
    path = paused.folder / "iterations/00001/commit.json"
    flip(path, path.read_bytes().index(field) + len(field))
    refused(paused, LedgerMismatch, "ledger.jsonl row")


@pytest.mark.parametrize("iteration", ["00000", "00001"])
def test_a_missing_commit_is_found_by_the_ledger_or_by_those_that_follow(paused: Bench, iteration: str) -> None:
    (paused.folder / "iterations" / iteration / "commit.json").unlink()
    refused(paused, LedgerMismatch, "commit.json is gone")


def test_a_missing_commit_is_found_without_the_ledger_where_others_follow(paused: Bench) -> None:
    (paused.folder / "iterations" / "00000" / "commit.json").unlink()
    (paused.folder / "ledger.jsonl").unlink()
    refused(paused, LedgerMismatch, "00000/commit.json is gone, but iterations/00001 is committed")


def test_a_flipped_byte_in_any_ledger_row_is_an_error_that_names_the_row(paused: Bench) -> None:
    path = paused.folder / "ledger.jsonl"
    whole = path.read_bytes()
    at = 0
    for number, row in enumerate(whole.splitlines(keepends=True), start=1):
        path.write_bytes(whole)
        flip(path, at + len(row) // 2)
        refused(paused, LedgerMismatch, f"ledger.jsonl row {number} ")
        at += len(row)


def test_swapped_ledger_rows_are_an_error_that_names_the_first(paused: Bench) -> None:
    path = paused.folder / "ledger.jsonl"
    rows = path.read_bytes().splitlines(keepends=True)
    rows[3], rows[4] = rows[4], rows[3]
    path.write_bytes(b"".join(rows))
    refused(paused, LedgerMismatch, "ledger.jsonl row 4 ")


def test_a_lost_ledger_is_rebuilt(paused: Bench, straight: tuple[list[str], bytes]) -> None:
    path = paused.folder / "ledger.jsonl"
    whole = path.read_bytes()
    path.unlink()
    paused.opened(lambda run: None)
    assert path.read_bytes() == whole
    assert paused.events("opened")[-1]["ledger_mended"] is True
    paused.run()
    assert paused.hashes() == straight


@pytest.mark.parametrize("left", [1, 40, -1])
def test_a_torn_last_line_of_the_ledger_is_completed(paused: Bench, left: int) -> None:
    path = paused.folder / "ledger.jsonl"
    whole = path.read_bytes()
    before = whole[: whole.rstrip(b"\n").rindex(b"\n") + 1]
    last = whole[len(before) :]
    path.write_bytes(before + last[:left])
    paused.opened(lambda run: None)
    assert path.read_bytes() == whole


def test_a_torn_line_beyond_the_last_commit_is_cut_off(paused: Bench) -> None:
    path = paused.folder / "ledger.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"entry":{"ite')
    paused.opened(lambda run: None)
    assert path.read_bytes() == whole


@BOTH
@pytest.mark.parametrize("file", ["weights.json", "manifest.json"])
def test_a_damaged_checkpoint_is_not_used_and_the_older_one_leads_to_the_same(
    paused: Bench, straight: tuple[list[str], bytes], damage: Damage, file: str
) -> None:
    damage(paused.paths("checkpoints/*")[-1] / file)
    paused.run()
    assert paused.hashes() == straight
    assert [event["version"] for event in paused.events("checkpoint_loaded")] == [1]
    assert [event["iteration"] for event in paused.events("replayed")] == [1]


def test_a_manifest_that_names_another_state_is_refused(paused: Bench, straight: tuple[list[str], bytes]) -> None:
    path = paused.paths("checkpoints/*")[-1] / "manifest.json"
    flip(path, path.read_bytes().index(b'"policy_sha256":"') + 17)
    paused.run()
    assert "another state" in paused.events("checkpoint_refused")[-1]["reason"]
    assert paused.hashes() == straight


def test_a_checkpoint_of_another_run_is_refused(paused: Bench, tmp_path: Path) -> None:
    other = Bench(tmp_path / "other", config_with(seed=1))
    other.run(limit=2)
    newest = paused.paths("checkpoints/*")[-1]
    shutil.rmtree(newest)
    shutil.copytree(other.folder / "checkpoints" / newest.name, newest)
    paused.run()
    assert "not in this run" in paused.events("checkpoint_refused")[0]["reason"]


def test_a_half_written_checkpoint_is_not_taken_for_one(paused: Bench, straight: tuple[list[str], bytes]) -> None:
    """BUG-100: what a crash leaves under a temporary name, or without its manifest, is swept or never used."""
    newest = paused.paths("checkpoints/*")[-1]
    shutil.copytree(newest, newest.with_name(".tmp-dead0-00003"))
    (newest / "manifest.json").unlink()
    paused.run()
    assert not newest.with_name(".tmp-dead0-00003").exists()
    assert paused.hashes() == straight


def test_weights_missing_from_a_checkpoint_are_named(paused: Bench) -> None:
    (paused.paths("checkpoints/*")[-1] / "weights.json").unlink()
    paused.run()
    assert "weights.json is missing" in paused.events("checkpoint_refused")[-1]["reason"]


def test_without_any_checkpoint_the_run_is_replayed_from_its_first_policy(
    paused: Bench, straight: tuple[list[str], bytes]
) -> None:
    shutil.rmtree(paused.folder / "checkpoints")
    paused.run()
    assert paused.hashes() == straight
    assert [event["iteration"] for event in paused.events("replayed")] == [0, 1]


@BOTH
def test_a_damaged_run_file_is_named(paused: Bench, damage: Damage) -> None:
    damage(paused.folder / "run.yaml")
    refused(paused, Damaged, "run.yaml")


def test_no_byte_of_the_run_file_can_change_what_is_trained_unseen(paused: Bench) -> None:
    path = paused.folder / "run.yaml"
    text = path.read_text()
    assert "learning_rate: 1.0e-06" in text
    path.write_text(text.replace("learning_rate: 1.0e-06", "learning_rate: 1.0e-05"))
    refused(paused, Damaged, "run.yaml is not what papo wrote", "--amend")


@BOTH
@pytest.mark.parametrize("file", ["events.jsonl", "metrics.jsonl"])
def test_a_damaged_journal_loses_a_line_and_no_training(
    paused: Bench, straight: tuple[list[str], bytes], damage: Damage, file: str
) -> None:
    damage(paused.folder / file)
    paused.run()
    assert paused.hashes() == straight
