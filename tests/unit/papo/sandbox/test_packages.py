"""Packages of the environment that programs may import: those that are named, and not a file more."""

import json
import os
from importlib import metadata
from pathlib import Path

import pytest

from papo.rewards import CodeTests, Verdict
from papo.sandbox import Isolation, SandboxError, isolation, packages

TESTS = json.dumps({"inputs": ["1 2 3"], "outputs": ["6"]})
SUMS = "import numpy\nprint(numpy.array(input().split(), int).sum())"
KINDS: list[Isolation] = [*(kind for kind in isolation.ORDER if isolation.fault_of(kind) is None), "none"]


def judged(code: str, *names: str, tests: str = TESTS) -> Verdict:
    reward = CodeTests(packages=names, allow_unsandboxed=True, cpu_seconds=4.0, wall_seconds=12.0)
    return reward(code, reference_answer=tests, finish_reason="stop")


@pytest.fixture(params=KINDS)
def _isolated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]  # pytest uses it
    monkeypatch.setattr(isolation, "ORDER", () if request.param == "none" else (request.param,))


@pytest.mark.usefixtures("_isolated")
def test_numpy_in_text_calls_and_assertions() -> None:
    assert judged(SUMS, "numpy").correct
    calls = json.dumps({"fn_name": "f", "inputs": [[[1, 2]]], "outputs": [3]})
    assert judged("import numpy\ndef f(x): return int(numpy.sum(x))", "numpy", tests=calls).correct
    listed = json.dumps({"test_list": ["assert math.isclose(f([1, 2]), 1.5)"], "test_imports": ["import math, numpy"]})
    assert judged("import numpy\ndef f(x): return float(numpy.mean(x))", "numpy", tests=listed).correct
    assert CodeTests(packages=("numpy",), allow_unsandboxed=True).self_test() is None


def test_what_is_not_named_is_not_there() -> None:
    """BUG-078."""
    assert "ModuleNotFoundError" in (judged(SUMS).reason or "")
    for name in ("papo", "yaml", "pytest", "torch"):
        assert "ModuleNotFoundError" in (judged(f"import {name}\nprint(6)", "numpy").reason or "")
    home = Path(packages.__file__).parents[2]
    code = f"import os\nprint(6 if os.path.exists({str(home)!r}) else sorted(os.listdir('/packages')))"
    assert judged(code, "numpy").reason == "another output"
    written = "open('/packages/numpy/planted', 'w')"
    assert "OSError" in (judged(written, "numpy").reason or "")


def test_a_folder_that_two_share_is_taken_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"shared/mine/a.py": 1, "shared/mine/b/c.py": 1, "shared/own.py": 1, "shared/theirs/d.py": 0, "six.py": 1,
             "mine-1.dist-info/METADATA": 1}  # fmt: skip
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    record = [name for name, own in files.items() if own]
    lines = [*record, "mine-1.dist-info/RECORD", "../../../bin/mine", "shared/gone.py", "/etc/passwd"]
    (tmp_path / "mine-1.dist-info" / "RECORD").write_text("".join(f"{line},,\n" for line in lines))
    (tmp_path / "shared" / "mine" / "__pycache__").mkdir()
    (tmp_path / "shared" / "mine" / "__pycache__" / "a.cpython-311.pyc").touch()
    monkeypatch.setattr(packages, "distribution", lambda name: metadata.PathDistribution(tmp_path / "mine-1.dist-info"))
    assert packages.readable(("mine",)) == {
        f"/packages/{inner}": os.fspath(tmp_path / inner)
        for inner in ("mine-1.dist-info", "shared/mine", "shared/own.py", "six.py")
    }
    assert packages.imported(("mine",)) == ["shared"]


def test_a_missing_package_is_named_before_a_run_and_in_the_version() -> None:
    reward = CodeTests(packages=("no-such-distribution",))
    reason = reward.self_test()
    assert reason is not None
    assert "pip install no-such-distribution" in reason
    assert reward.version.endswith(" no-such-distribution=missing")
    with pytest.raises(SandboxError, match="no-such-distribution, which is not installed"):
        packages.readable(("no-such-distribution",))


def test_an_editable_installation_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mine-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (folder / "RECORD").write_text("mine-1.dist-info/METADATA,,\n__editable__.mine.pth,,\n")
    (tmp_path / "__editable__.mine.pth").touch()
    monkeypatch.setattr(packages, "distribution", lambda name: metadata.PathDistribution(folder))
    with pytest.raises(SandboxError, match="which files are its own"):
        packages.readable(("editable",))


def test_versions_of_runs_without_packages_are_as_they_were() -> None:
    assert CodeTests().version == (
        'code_tests/2 {"aggregate": "all", "allow_unsandboxed": false, "cpu_seconds": 10.0, "kind": "code_tests", '
        '"language": "python", "memory_mib": 512, "processes": 24, "tolerance": 0.0, "truncated": "zero", '
        '"wall_seconds": 30.0}'
    )
    versioned = CodeTests(packages=("numpy",)).version
    assert '"packages": ["numpy"]' in versioned
    assert versioned.endswith(f" numpy={metadata.version('numpy')}")
    with pytest.raises(ValueError, match="packages are for python"):
        CodeTests(language="cpp", packages=("numpy",))
