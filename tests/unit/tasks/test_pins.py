"""Code of custom rewards and files of reward models are identity: refused, kept, amended (C-05)."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.iteration import advance
from papo.errors import ConfigError, Damaged, PapoError
from papo.rewards import CustomReward, custom
from papo.rewards.customcode import code_sha256
from schemas.config import RunConfig
from tasks.calling import direct
from tasks.disk import LocalDisk
from tasks.modelfiles import files_sha256
from tasks.opening import close_run, open_run
from tasks.pins import as_begun, keep_code, pinned, stand_in, without_pins
from tasks.runfile import read_run_file
from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench

HELPER = "def worth(completion):\n    return 1.0 if completion.strip() else 0.5\n"
REWARD = """
from c05_helper import worth


def right(completion, *, reference_answer, finish_reason):
    return worth(completion)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path with a reward and what it imports."""
    folder = tmp_path / "place"
    folder.mkdir()
    (folder / "c05_reward.py").write_text(REWARD)
    (folder / "c05_helper.py").write_text(HELPER)
    monkeypatch.syspath_prepend(str(folder))
    path = list(sys.path)
    yield folder
    sys.path[:] = path
    forget()


def forget() -> None:
    """As in another process: nothing of it is loaded, nothing stands in."""
    custom._module_of.cache_clear()
    custom._KEPT.clear()
    for name in ("c05_reward", "c05_helper"):
        sys.modules.pop(name, None)


@pytest.fixture(params=["module", "file"])
def target(request: pytest.FixtureRequest, place: Path) -> str:
    return "c05_reward:right" if request.param == "module" else f"{place / 'c05_reward.py'}:right"


def config_of(target: str, **pins: Any) -> RunConfig:
    return config_with(reward={"outcome": {"kind": "custom", "target": target, **pins}})


def no_models(_: object) -> str:
    raise AssertionError("there is no reward model")


def of_run(bench: Bench) -> Any:
    return lambda config: pinned(config, run_id=bench.folder.name, hashed=no_models)


def start(bench: Bench, config: RunConfig | None = None, *, amend: bool = False, limit: int | None = None) -> None:
    """Advance the run; as its recorded config says, if none is given."""
    bench.folder.mkdir(exist_ok=True)
    run, state = open_run(bench.around(pinned=of_run(bench)), "bench", config, amend=amend)
    try:
        advance(run, state, direct(run), limit=limit)
    finally:
        close_run(run)


def code_of(config: RunConfig) -> str | None:
    assert isinstance(config.reward.outcome, CustomReward)
    return config.reward.outcome.code


def recorded(bench: Bench) -> RunConfig:
    run_file = read_run_file(bench.disk)
    assert run_file is not None
    return run_file.latest


def contents(bench: Bench) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in bench.folder.rglob("*") if path.is_file() and path.name != "lock"}


def test_c_05_a_run_is_begun_with_the_hash_and_keeps_the_source(tmp_path: Path, target: str) -> None:
    bench = Bench(tmp_path / "bench")
    start(bench, config_of(target), limit=1)
    code = code_of(recorded(bench))
    assert code is not None
    assert code == code_sha256({"c05_reward.py": REWARD.encode(), "c05_helper.py": HELPER.encode()})
    kept = {path.name: path.read_text() for path in (bench.folder / "code" / code[:16]).glob("*.py")}
    assert kept == {"c05_reward.py": REWARD, "c05_helper.py": HELPER}


@pytest.mark.parametrize("edited", ["c05_reward.py", "c05_helper.py"])
def test_c_05_edited_code_is_refused_by_both_hashes_and_an_amendment_takes_it(
    tmp_path: Path, place: Path, target: str, edited: str
) -> None:
    bench = Bench(tmp_path / "bench")
    start(bench, config_of(target), limit=1)
    first, before = code_of(recorded(bench)), contents(bench)
    text = (place / edited).read_text()
    (place / edited).write_text(text + "# another line\n")
    for config in (None, config_of(target), config_of(target, code=first)):
        with pytest.raises(ConfigError) as caught:
            start(bench, config)
        now = code_sha256(CustomReward(target=target).sources())
        assert str(first) in str(caught.value)
        assert now in str(caught.value)
        (way,) = caught.value.ways_out
        assert (way.command, way.arguments) == ("resume", ("bench",))
        assert way.options[0][0] == "--amend"
        assert way.options[0][1].replace('"', "") == f"reward.outcome.code={now}"
        assert contents(bench) == before

    (place / edited).write_text(text)
    start(bench, limit=1)
    (place / edited).write_text(text + "# another line\n")
    start(bench, config_of(target, code=now), amend=True)
    run_file = read_run_file(bench.disk)
    assert run_file is not None
    assert [(epoch.since, code_of(run_file.config_at(epoch.since))) for epoch in run_file.epochs] == [
        (0, first),
        (2, now),
    ]
    assert [commit.config_sha256 for commit in bench.commits] == [
        run_file.config_sha256_at(commit.iteration) for commit in bench.commits
    ]
    assert "amended from iteration 2" in bench.events("noted")[-1]["text"]
    assert {path.name for path in (bench.folder / "code").iterdir()} == {str(first)[:16], now[:16]}


def test_c_05_an_edited_function_judges_by_what_it_says_now(tmp_path: Path, place: Path, target: str) -> None:
    """In one process too, as with a retry: the amended run is the one that a new process would make."""
    bench = Bench(tmp_path / "bench")
    start(bench, config_of(target), limit=1)
    (place / "c05_helper.py").write_text(HELPER.replace("1.0", "0.25").replace("0.5", "0.25"))
    start(bench, config_of(target, code=None), amend=True)
    frames = [pl.read_parquet(path) for path in bench.paths("iterations/0000[12]/outcomes-*.parquet")]
    assert set(pl.concat(frames)["accuracy_reward"].to_list()) == {0.25}


def test_c_05_an_evaluation_s_own_reward_is_pinned_too(tmp_path: Path, place: Path) -> None:
    config = config_with(evaluation={"every": 2, "outcome": {"kind": "custom", "target": "c05_reward:right"}})
    found, code = pinned(config, run_id="r", hashed=no_models)
    assert found.evaluation is not None
    assert isinstance(found.evaluation.outcome, CustomReward)
    assert found.evaluation.outcome.code is not None
    (place / "c05_helper.py").write_text("worth = len\n")
    with pytest.raises(ConfigError, match=r"evaluation\.outcome\.code"):
        pinned(found, run_id="r", hashed=no_models)
    assert {path.rpartition("/")[2] for path in code} == {"c05_reward.py", "c05_helper.py"}


def test_c_05_where_the_source_is_gone_the_kept_copy_stands_in(tmp_path: Path, place: Path, target: str) -> None:
    straight, bench = Bench(tmp_path / "straight"), Bench(tmp_path / "bench")
    start(straight, config_of(target))
    start(bench, config_of(target), limit=1)
    for path in place.glob("*.py"):
        path.unlink()
    forget()
    assert stand_in(recorded(bench), bench.folder) == [target]
    start(bench)
    assert bench.hashes() == straight.hashes()


def test_c_05_nothing_stands_in_where_the_source_is_there(tmp_path: Path, place: Path, target: str) -> None:
    bench = Bench(tmp_path / "bench")
    start(bench, config_of(target), limit=1)
    forget()
    assert stand_in(recorded(bench), bench.folder) == []


@pytest.mark.parametrize("damage", ["changed", "lost", "more"])
def test_c_05_a_damaged_copy_stands_in_for_nothing(tmp_path: Path, place: Path, target: str, damage: str) -> None:
    bench = Bench(tmp_path / "bench")
    start(bench, config_of(target), limit=1)
    for path in place.glob("*.py"):
        path.unlink()
    forget()
    helper = next(bench.folder.glob("code/*/c05_helper.py"))
    if damage == "changed":
        helper.write_text(HELPER.replace("1.0", "0.0"))
    elif damage == "lost":
        helper.unlink()
    else:
        (helper.parent / "c05_more.py").write_text("")
    with pytest.raises(Damaged, match="is not what was kept there"):
        stand_in(recorded(bench), bench.folder)


def test_c_05_source_that_is_gone_without_a_copy_is_named(tmp_path: Path, place: Path) -> None:
    config = config_of(f"{place / 'nowhere.py'}:right", code="0" * 64)
    with pytest.raises(ConfigError, match=r"nowhere\.py:right cannot be loaded .*Put its source back"):
        pinned(config, run_id="r", hashed=no_models)


@pytest.mark.parametrize("damage", ["lost", "changed", "torn"])
def test_c_05_a_damaged_copy_is_kept_again_whole_while_the_source_is_there(tmp_path: Path, damage: str) -> None:
    disk, code = LocalDisk(tmp_path), {"abc/one.py": b"1", "abc/pack/__init__.py": b"", "abc/pack/two.py": b"2"}
    keep_code(disk, code)
    if damage == "lost":
        disk.remove("code/abc/one.py")
    elif damage == "changed":
        disk.write("code/abc/pack/two.py", b"3")
    else:
        disk.make_folder("code/abc.draft-x")
    keep_code(disk, code)
    there = {f"abc/{name}": disk.read(f"code/abc/{name}") for name in disk.walk("code/abc")}
    assert there == code


def test_c_05_a_run_from_before_there_were_pins_goes_on_as_it_is(tmp_path: Path, target: str) -> None:
    bench = Bench(tmp_path / "bench", config_of(target))
    bench.run(limit=1)
    before = recorded(bench)
    assert code_of(before) is None
    found, _ = pinned(before, run_id="bench", hashed=no_models)
    assert as_begun(found, given=before, before=before) == before
    assert without_pins(found) == before
    start(bench)
    assert code_of(recorded(bench)) is None


def test_c_05_a_reward_model_s_files_are_pinned_likewise(tmp_path: Path) -> None:
    model = tmp_path / "judge"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"1")
    config = config_with(reward={"outcome": {"kind": "reward_model", "path": str(model)}})

    def look(config: RunConfig) -> tuple[RunConfig, dict[str, bytes]]:
        return pinned(config, run_id="r", hashed=lambda judge: files_sha256(judge.path))

    found, code = look(config)
    first = files_sha256(str(model))
    assert code == {}
    assert without_pins(found) == config
    assert found.sha256 != config.sha256
    assert look(found)[0] == found
    (model / "model.safetensors").write_bytes(b"2")
    with pytest.raises(ConfigError, match=rf"reward\.outcome\.files says: sha256 .*{first} there") as caught:
        look(found)
    spelled = caught.value.ways_out[0].options[0]
    assert spelled == ("--amend", f"reward.outcome.files={files_sha256(str(model))}")
    (model / "model.safetensors").unlink()
    model.rmdir()
    with pytest.raises(PapoError, match=r"cannot be read .*reward\.outcome\.path"):
        look(found)
