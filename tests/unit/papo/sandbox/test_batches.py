"""Hostile programs among others of a batch: the others are judged as ever, nothing of the host is used up or left."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from papo.rewards import Answered, CodeTests, judge_all
from papo.sandbox import Limits, box, chosen, run
from papo.sandbox.isolation import python
from tests.unit.papo.sandbox.hostile import BOMBS
from tests.unit.papo.sandbox.test_hostile import FOLDER, survivors

TESTS = json.dumps({"inputs": ["20"], "outputs": ["22"]})
RIGHT, WRONG = "print(int(input()) + 2)", "print(int(input()) + 1)"
REWARD = CodeTests(cpu_seconds=1.0, wall_seconds=4.0, memory_mib=200)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where sandboxes lie; others of the host may enter it."""
    found = Path(tempfile.mkdtemp(prefix="papo-test-"))
    found.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(found))
    monkeypatch.setattr(box, "FOLDER", FOLDER)
    yield found
    shutil.rmtree(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "limits"),
    [
        pytest.param(("fork bomb", "2000 threads"), ("processes", "cpu"), id="BUG-075"),
        pytest.param(
            ("8 GB at once", "list that grows", "10 GB file"), ("memory", "files", "exit", "signal"), id="BUG-076",
        ),
        pytest.param(
            ("endless loop", "long sleep", "endless output", "catastrophic expression"), ("cpu", "wall", "output"),
            id="BUG-072",
        ),
    ],
)  # fmt: skip
def test_the_others_of_a_batch_are_judged_as_ever(
    names: tuple[str, ...], limits: tuple[str, ...], folder: Path
) -> None:
    # Idle workers of earlier tests may end with the batch; nothing may be left that was not there before.
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    files = len(os.listdir("/proc/self/fd"))
    programs = [code for name in names for code in (RIGHT, BOMBS[name][0], WRONG)]
    verdicts = list(judge_all(REWARD, [Answered(completion=code, reference_answer=TESTS) for code in programs]))
    assert [verdict.accuracy for verdict in verdicts[0::3]] == [1.0] * len(names)
    assert [verdict.accuracy for verdict in verdicts[2::3]] == [0.0] * len(names)
    for name, verdict in zip(names, verdicts[1::3], strict=True):
        # A host that has no time for it says so, twice: null, and nothing paid.
        assert not verdict.accuracy, name
        assert verdict.status in ("ok", "timeout"), name
        assert verdict.status == "timeout" or (verdict.reason or "").startswith(limits), (name, verdict.reason)
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before
    assert len(os.listdir("/proc/self/fd")) <= files
    assert survivors() == []
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_bug_076_the_hosts_memory_is_not_used_up(folder: Path) -> None:
    """All that the program and its folder held at its most, as this process's children count it."""
    limits = Limits(cpu_seconds=2.0, wall_seconds=6.0, memory_bytes=200 * 2**20, disk_bytes=16 * 2**20)
    for name in ("8 GB at once", "list that grows", "memory by many processes", "10 GB file"):
        files = {"main.py": BOMBS[name][0].encode()}
        isolation = chosen(allow_unsandboxed=False)
        outcome = run([python(), "-I", "{program}/main.py"], files=files, limits=limits, isolation=isolation)
        assert outcome.memory_bytes <= limits.memory_bytes + 200 * 2**20, name
        assert list(folder.iterdir()) == [], name
