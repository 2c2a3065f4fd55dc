"""A long run is as light as a short one: few commits in memory, none hashed twice, none parsed without need."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from papo.errors import Damaged, LedgerMismatch
from schemas.config import RunConfig
from schemas.records import Commit
from tasks.disk import LocalDisk
from tasks.history import History, history_of
from tasks.ledger import Ledger
from tasks.stopping import stop_reason
from tasks.store import RunStore
from tests.simulation.world import Silent, config_with
from tests.unit.tasks.bench import Bench


def opened(bench: Bench) -> History:
    return RunStore(bench.disk).history(Ledger(bench.disk).expect)


def test_a_history_is_the_commits_in_order(done: Bench) -> None:
    history = opened(done)
    assert list(history) == done.commits
    assert history[-2:] == done.commits[-2:]
    assert [history.sha256(index) for index in range(4)] == [commit.sha256 for commit in done.commits]
    policy = done.commits[2].state.policy.fingerprint.policy_sha256
    assert history.of_policy(policy) == [2]
    assert history.find(done.commits[1].sha256) == done.commits[1]
    assert history.find("another run's") is None


def test_a_commit_that_changes_while_the_run_goes_on_is_refused(done: Bench) -> None:
    history = opened(done)
    path = done.folder / "iterations/00001/commit.json"
    path.write_bytes(path.read_bytes().replace(b'"rollouts":4', b'"rollouts":5'))
    with pytest.raises(LedgerMismatch, match="commit of iteration 1 is not what it was when the run was opened"):
        _ = history[2]


def test_c_09_few_commits_are_kept_in_memory(done: Bench) -> None:
    history = history_of([])
    for _ in range(1000):
        history.append(done.commits[-1])
    assert len(history) == 1000
    assert len(history._whole) < 100


def test_c_09_no_rule_looks_far_back(done: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deciding whether to stop took longer with each iteration: it hashed the config once for every commit."""
    hashed: list[RunConfig] = []
    sha256 = RunConfig.sha256.fget
    assert sha256 is not None
    monkeypatch.setattr(RunConfig, "sha256", property(lambda self: hashed.append(self) or sha256(self)))
    read: list[int] = []

    def commit_at(index: int) -> tuple[str, Commit]:
        read.append(index)
        return done.commits[-1].sha256, done.commits[-1]

    history = History(commit_at)
    for _ in range(10_000):
        history.note(done.commits[-1].sha256, "policy", {"length_mean": 1.0})
    config = config_with(stop={"plateau_evaluations": 2, "max_length_growth": 9.0})
    assert stop_reason(config, history) is None
    assert set(read) == {9_999}
    assert len(hashed) <= 3


def test_c_09_opening_parses_no_commit_but_the_last(done: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    validate = Commit.model_validate_json

    def noted(data: bytes) -> Commit:
        parsed.append(len(data))
        return validate(data)

    monkeypatch.setattr(Commit, "model_validate_json", noted)
    opened(done)
    assert len(parsed) == 1


def test_nan_in_a_commit_is_damage(done: Bench, tmp_path: Path) -> None:
    path = done.folder / "iterations/00000/commit.json"
    path.write_bytes(path.read_bytes().replace(b'"rollouts":4', b'"rollouts":NaN'))
    with pytest.raises(Damaged, match=r"00000/commit\.json"):
        opened(done)


class Counting(LocalDisk):
    """Counts what is asked of it, and the bytes that are read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not callable(found) or name.startswith("_"):
            return found
        self.asked[name] += 1
        return self.read_counted if name == "read" else found

    def read_counted(self, path: str) -> bytes:
        """As `read`."""
        data = super().read(path)
        self.asked["bytes"] += len(data)
        return data


def test_c_09_an_iteration_asks_as_much_of_the_disk_late_as_early(tmp_path: Path) -> None:
    every = {"every": 4}
    bench = Bench(tmp_path / "run", config_with(iterations=16, checkpoint=every, evaluation=every))
    (tmp_path / "run").mkdir()
    disk, spent = Counting(tmp_path / "run"), list[Counter[str]]()

    class Watching(Silent):
        def iteration(self, iteration: int, values: dict[str, Any]) -> None:
            spent.append(disk.asked.copy())

    bench.run(disk=disk, reporter=Watching())
    # Four iterations each, one of them with a checkpoint and an evaluation.
    early, late = spent[8] - spent[4], spent[16] - spent[12]
    # (Which checkpoint gives way differs, by an operation or two. One more a past iteration would be 32.)
    grown = {name: late[name] - early[name] for name in late if name != "bytes" and late[name] > early[name] + 4}
    assert not grown
    assert late["bytes"] < 1.1 * early["bytes"]
