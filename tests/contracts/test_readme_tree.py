"""The README's annotated tree, compared with what git tracks: a map that is wrong is worse than none."""

import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("flows", "tasks", "schemas", "papo")
BLOCK = re.compile(r"^## The tree$.*?^```[a-z]*\n(?P<tree>.*?)^```$", re.MULTILINE | re.DOTALL)
BRANCHES = str.maketrans("│├└─┬", "     ")
NAMES = re.compile(r"[^\s,]+(?:, [^\s,]+)*")


def paths_in(tree: str) -> set[str]:
    """The paths that a drawn tree lists: nesting by indentation, "a.py, b.py" on one line, then the annotation."""
    listed: set[str] = set()
    above: list[tuple[int, PurePosixPath]] = []
    for line in tree.translate(BRANCHES).splitlines():
        found = NAMES.search(line)
        if found is None:
            continue
        above = [(column, path) for column, path in above if column < found.start()]
        parent = above[-1][1] if above else PurePosixPath()
        paths = [parent / name for name in found.group().split(", ")]
        above.append((found.start(), paths[-1]))
        listed |= {str(path) for path in paths}
    return listed - {"."}


def due(tracked: set[str]) -> set[str]:
    """What the tree must list of `tracked`: folders of the first two levels, modules of a package's own folder."""
    paths = [PurePosixPath(path) for path in tracked]
    folders = {str(parent) for path in paths for parent in path.parents if 1 <= len(parent.parts) <= 2}
    modules = {
        str(path)
        for path in paths
        if str(path.parent) in PACKAGES and path.suffix == ".py" and path.name != "__init__.py"
    }
    return folders | modules


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def tracked() -> set[str]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: nothing says what belongs to the tree")
    return set(git("ls-files", "-z").split("\0")) - {""}


@pytest.fixture(scope="module")
def listed() -> set[str]:
    readme = ROOT / "README.md"
    assert readme.exists(), "README.md is missing; it ends with the annotated tree under '## The tree'"
    block = BLOCK.search(readme.read_text(encoding="utf-8"))
    assert block is not None, "README.md has no fenced block under a heading '## The tree'"
    return paths_in(block["tree"])


def test_what_is_tracked_is_listed(tracked: set[str], listed: set[str]) -> None:
    missing = sorted(due(tracked) - listed)

    assert not missing, f"README's tree does not list {missing}"


def test_what_is_listed_is_tracked(tracked: set[str], listed: set[str]) -> None:
    known = tracked | {str(parent) for path in tracked for parent in PurePosixPath(path).parents}
    made = {path for path in listed - known if not is_ignored(path)}

    assert not made, f"README's tree lists what git does not track: {sorted(made)}"


def is_ignored(path: str) -> bool:
    """Whether git ignores `path`: what running makes (runs/, models/) may be in the tree too."""
    command = ["git", "check-ignore", "--quiet", f"{path}/"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(
    "tree",
    [
        "papo/  the method\n  values.py, errors.py   small\n  engines/   heavy\n    host.py  process\ndocs/  words\n",
        "papo/\n├── values.py, errors.py\n└── engines/      heavy, lazily\n    └── host.py\ndocs/\n",
    ],
    ids=["indented", "drawn"],
)
def test_a_tree_is_read(tree: str) -> None:
    assert paths_in(tree) == {
        "papo",
        "papo/values.py",
        "papo/errors.py",
        "papo/engines",
        "papo/engines/host.py",
        "docs",
    }


def test_what_must_be_listed() -> None:
    files = {"papo/__init__.py", "papo/values.py", "papo/engines/deep/host.py", "docs/adr/0001.md", "Makefile"}

    assert due(files) == {"papo", "papo/values.py", "papo/engines", "docs", "docs/adr"}
