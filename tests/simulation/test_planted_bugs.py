"""The simulation must be able to fail: seven bugs that only a crash brings to light, each planted and each caught.

The seeds were searched for once; each is a schedule that `test_schedules` passes without the bug.
"""

from typing import Any

import pytest

from papo.errors import PapoError
from schemas.records import Commit, IterationState
from tasks import holding, store
from tasks.disk import Disk
from tasks.journal import Journal
from tasks.ledger import Ledger
from tasks.publish import replace
from tasks.run import Run
from tasks.store import RunStore, folder_of
from tests.simulation.disk import SimDisk
from tests.simulation.schedules import check_schedule


def is_caught(seed: int, *, ignore_sync: bool = False) -> bool:
    """Whether the schedule ends in another state than the undisturbed run, or in an error."""
    try:
        check_schedule(seed, ignore_sync=ignore_sync)
    except (AssertionError, PapoError, OSError):
        return True
    return False


def plant_ledger_before_commit(patch: pytest.MonkeyPatch) -> None:
    commit_it = RunStore.commit

    def commit(self: RunStore, commit: Commit) -> None:
        ledger = Ledger(self.disk)
        self.history(ledger.expect)
        ledger.open()
        ledger.append(commit)
        commit_it(self, commit)

    patch.setattr(RunStore, "commit", commit)


def plant_sidecar_before_artifact(patch: pytest.MonkeyPatch) -> None:
    artifacts: list[tuple[Disk, str, bytes]] = []
    create_once = store.create_once

    def postpone(disk: Disk, path: str, data: bytes) -> None:
        artifacts.append((disk, path, data))

    def create_first(disk: Disk, path: str, data: bytes) -> bool:
        created = create_once(disk, path, data)
        postponed, artifacts[:] = [one for one in artifacts if one[0] is disk], []
        for one in postponed:
            replace(*one)
        return created

    patch.setattr(store, "replace", postpone)
    patch.setattr(store, "create_once", create_first)


def plant_commit_that_replaces(patch: pytest.MonkeyPatch) -> None:
    def commit(self: RunStore, commit: Commit) -> None:
        replace(self.disk, f"{folder_of(commit.iteration)}/commit.json", commit.to_bytes())

    patch.setattr(RunStore, "commit", commit)


def plant_no_replay(patch: pytest.MonkeyPatch) -> None:
    def hold(run: Run, state: IterationState) -> None:
        if not holding.holds(run, state):
            holding._load_nearest(run, state.policy)

    patch.setattr(holding, "hold", hold)


def plant_folders_not_synced(patch: pytest.MonkeyPatch) -> None:
    def sync_folder(self: SimDisk, path: str) -> None:
        self._plain_step("sync_folder", path)

    patch.setattr(SimDisk, "sync_folder", sync_folder)


def plant_journal_not_mended(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Journal, "mend", lambda self, commits: 0)


PLANTED: dict[str, tuple[Any, tuple[int, ...]]] = {
    "ledger before commit": (plant_ledger_before_commit, (3, 11)),
    "sidecar before artifact": (plant_sidecar_before_artifact, (3, 5)),
    "commit replaces": (plant_commit_that_replaces, (12, 13)),
    "no replay": (plant_no_replay, (0, 1)),
    "journal not mended": (plant_journal_not_mended, (0, 1)),
    "folders not synced": (plant_folders_not_synced, (0, 3)),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, seeds = PLANTED[name]
    plant(monkeypatch)
    assert all(is_caught(seed) for seed in seeds)


def test_a_disk_that_ignores_fsync_is_caught() -> None:
    assert is_caught(0, ignore_sync=True)
    assert is_caught(1, ignore_sync=True)
