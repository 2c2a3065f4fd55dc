"""A run is its folder, through the command line: edited rewards, runs that are only looked at, copied and moved."""

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.drills.runs import Scripted

Make = Callable[[str], Scripted]
REWARD = """
def right(completion, *, reference_answer, finish_reason):
    return len(completion) % 2 == 0
"""


@pytest.fixture
def custom(scripted: Make) -> Make:
    """Runs with a reward from a file beside their config."""

    def made(name: str) -> Scripted:
        run = scripted(name)
        place = run.config.parent / "reward.py"
        if not place.exists():
            place.write_text(REWARD)
        fields = yaml.safe_load(run.config.read_text())
        fields["reward"] = {"outcome": {"kind": "custom", "target": f"{place}:right"}}
        run.config.write_text(yaml.safe_dump(fields))
        return run

    return made


def edit(run: Scripted) -> None:
    place = run.config.parent / "reward.py"
    place.write_text(place.read_text().replace("== 0", "== 1"))


def proposed(text: str) -> list[str]:
    """What the error says to type, without the program's name."""
    words = shlex.split(next(line for line in text.splitlines() if line.startswith("As an amendment")))
    return words[words.index("resume") :]


@pytest.mark.parametrize("more", [(), ("--set", "iterations=3"), ("--amend", "optimizer.learning_rate=0.5")])
def test_c_05_an_edited_reward_is_refused_and_what_is_proposed_takes_it_up(custom: Make, more: tuple[str, ...]) -> None:
    run = custom("edited")
    assert run.run("--limit", "1") == 0, run.text
    before = run.hashes
    edit(run)
    assert run.command("resume", "--direct", *more) == 2, run.text
    assert re.search(r"The code of \S+reward.py:right is not what reward.outcome.code says", run.text)
    assert len(set(re.findall(r"\b[0-9a-f]{64}\b", run.text))) == 2, "both hashes are named"
    assert run.hashes == before
    said = run.text
    assert run.command(*proposed(said)[:1], *proposed(said)[2:]) == 0, run.text
    assert "amended from iteration 1 on" in run.text
    assert run.status.amendments[0][0] == 1
    assert run.status.state == "done"


def test_c_05_a_reward_that_is_gone_is_stood_in_for(custom: Make) -> None:
    straight, run = custom("straight"), custom("gone")
    assert straight.run() == 0, straight.text
    assert run.run("--limit", "1") == 0, run.text
    (run.config.parent / "reward.py").unlink()
    assert run.command("resume", "--direct") == 0, run.text
    assert run.hashes == straight.hashes


@pytest.mark.parametrize("lost", ["edited", "gone", "data changed", "data gone"])
def test_a_run_is_looked_at_whatever_became_of_what_only_training_needs(custom: Make, lost: str) -> None:
    run = custom("looked")
    assert run.run("--limit", "2") == 0, run.text
    place = run.config.parent
    if lost == "edited":
        edit(run)
    elif lost == "gone":
        (place / "reward.py").unlink()
        shutil.rmtree(run.folder / "code")
    elif lost == "data changed":
        (place / "train.jsonl").write_text("{}\n")
    else:
        (place / "train.jsonl").unlink()
    exported = place / "exported"
    assert run.command("export", "--at", "1", "--output", str(exported)) == 0, run.text
    assert (exported / "papo.json").exists()
    assert run.command("status") == 0, run.text
    assert run.command("samples") == 0, run.text


def test_an_amendment_without_a_value_is_named(scripted: Make) -> None:
    run = scripted("bare")
    assert run.run("--limit", "1") == 0, run.text
    assert run.command("resume", "--amend", "optimizer.learning_rate", "--amend", "--direct") == 2
    assert "--amend optimizer.learning_rate, --amend --direct is not of the form a.b=c" in run.text


def moved(run: Scripted, to: Path) -> Scripted:
    """The same run where its folder is now called `to`."""
    return Scripted(config=run.config, runs=to.parent, name=to.name)


def test_c_01_a_copy_and_a_renamed_folder_end_as_the_run_that_stayed(custom: Make, tmp_path: Path) -> None:
    straight, run = custom("straight"), custom("first")
    assert straight.run() == 0, straight.text
    assert run.run("--limit", "1") == 0, run.text
    before = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    copied = moved(run, tmp_path / "elsewhere" / "copied")
    shutil.copytree(run.folder, copied.folder)
    assert copied.command("resume", "--direct") == 0, copied.text
    assert "goes on here as run copied" in copied.text
    assert {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()} == before
    renamed = moved(run, run.runs / "renamed")
    run.folder.rename(renamed.folder)
    assert renamed.command("resume", "--direct") == 0, renamed.text
    assert not run.folder.exists()
    assert copied.hashes == renamed.hashes == straight.hashes
    assert (copied.status.run_id, copied.status.origin) == ("copied", "first")


def test_a_project_that_was_moved_as_a_whole_goes_on_there(scripted: Make, tmp_path: Path) -> None:
    """Its data and its model are found by the way from the run's folder; what stays behind is not used."""
    straight, run = scripted("straight"), scripted("run")
    assert straight.run() == 0, straight.text
    assert run.run("--limit", "1") == 0, run.text
    project = tmp_path.parent / f"{tmp_path.name}-moved"
    shutil.copytree(tmp_path, project)
    for name in ("train.jsonl", "evaluation.jsonl"):
        (tmp_path / name).write_text("{}\n")
    shutil.rmtree(tmp_path / "model")
    there = moved(run, project / "runs" / "run")
    assert there.command("resume", "--direct") == 0, there.text
    assert there.hashes == straight.hashes
    run_file = yaml.safe_load((there.folder / "run.yaml").read_text())
    assert run_file["base"] == str(project)


def test_changed_weights_are_refused_by_name_before_the_first_checkpoint(scripted: Make) -> None:
    run = scripted("early")
    assert run.run("--limit", "1") == 0, run.text
    shutil.rmtree(run.folder / "checkpoints")
    weights = run.config.parent / "model" / "model.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data + b" ")
    assert run.command("resume", "--direct") == 2, run.text
    assert "model.safetensors of the policy's model folder is another file than when run early began" in run.text
    weights.write_bytes(data)
    assert run.command("resume", "--direct") == 0, run.text
