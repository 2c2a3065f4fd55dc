"""The same hostile programs, run by a user without rights: user namespaces alone hold them."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.papo.sandbox.hostile import BOMBS, QUIET
from tests.unit.papo.sandbox.test_hostile import FOLDER, survivors

ROOT = Path(__file__).resolve().parents[4]
PYTHON = "/usr/bin/python3"
NOBODY = 65534


def as_nobody(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PYTHON, *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", **environment},
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def usable() -> bool:
    """Root can become somebody else here, who finds a Python that reads this tree."""
    if os.getuid() != 0 or not Path(PYTHON).exists():
        return False
    return as_nobody("-c", "import sys, papo.sandbox; sys.exit(sys.version_info < (3, 11))").returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not usable(), reason="needs root, and a system Python 3.11 that others may use on this tree")
@pytest.mark.parametrize(
    ("kind", "every"), [("bubblewrap", 1), ("namespaces", 3), pytest.param("namespaces", 1, marks=pytest.mark.long)]
)
def test_a_user_without_rights_is_as_safe(kind: str, every: int, tmp_path: Path) -> None:
    """BUG-072, BUG-075, BUG-076, BUG-078."""
    if kind == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    kept = tmp_path / "rewards.jsonl"
    kept.write_text("a run's file")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o777)
    kept.chmod(0o666)
    done = as_nobody(
        "-m", "tests.unit.papo.sandbox.as_user", str(kept), FOLDER, kind, f"{every}", PAPO_SECRET="tell nobody"
    )
    found = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert set(found) == set([*BOMBS, *QUIET][::every]), done.stderr[-2000:]
    for name, row in found.items():
        assert "HARM" not in row["stdout"], row
        assert "SyntaxError" not in row["stderr"], row
        assert row["wall_seconds"] <= 5, row
        assert row["memory_bytes"] <= 400 * 2**20, row
        assert name not in BOMBS or row["ending"] in BOMBS[name][1] | {"busy"}, row
    assert [path.name for path in tmp_path.iterdir()] == [kept.name]
    assert kept.read_text() == "a run's file"
    assert survivors() == []
