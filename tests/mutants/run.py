"""Break the method in one place at a time and see whether a test notices: `make mutants`.

Works on a copy of the tree in a temporary folder. Each mutant is run in a fork of a process that has loaded numpy,
torch and pytest but nothing of papo, against the few test files that are about it. The last line is `killed N of M`.
"""

import importlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.mutants import EXPLAINED, MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
COPIED = ("papo", "tests", "schemas", "pyproject.toml")
LEAST = 0.95
FAILED, BROKEN = 1, 2
"""Exit codes of pytest: a test failed; a test module did not even load."""


def main() -> int:
    """Run them all (or those whose number is on the command line); 0 if enough are killed."""
    chosen = [int(number) for number in sys.argv[1:]] or range(len(MUTANTS))
    killed, begun = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_tree(tree)
        load_heavy_modules()
        clean = {test for number in chosen for test in MUTANTS[number].tests}
        if run_tests(tree, sorted(clean)) != 0:
            say("the tests fail without any mutant: nothing is learnt from mutants now")
            return 1
        say(f"the tests pass without mutants, after {time.monotonic() - begun:.0f} s")
        for number in chosen:
            mutant = MUTANTS[number]
            dead = run_mutant(tree, mutant)
            killed += dead
            if dead:
                say(f"{number} killed: {mutant.file}: {mutant.new!r}")
            else:
                reason = EXPLAINED.get((mutant.file, mutant.new), "NOT EXPLAINED")
                say(f"{number} survived: {mutant.file}: {mutant.old!r} -> {mutant.new!r}: {reason}")
    say(f"{time.monotonic() - begun:.0f} s")
    say(f"killed {killed} of {len(chosen)}")
    return 0 if killed >= LEAST * len(chosen) else 1


def copy_tree(tree: Path) -> None:
    """What the tests of the method need, without caches."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            left_out = ("__pycache__", "engines") if name == "tests" else ("__pycache__",)
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns(*left_out))
        else:
            shutil.copy(source, tree / name)


def run_mutant(tree: Path, mutant: Mutant) -> bool:
    """Whether a test fails with the mutant in place. Raises ValueError if its text is not there exactly once."""
    path = tree / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file} has {text.count(mutant.old)} times {mutant.old!r}: mutate what is there once.")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        return run_tests(tree, list(mutant.tests)) in (FAILED, BROKEN)
    finally:
        path.write_text(text, encoding="utf-8")


def load_heavy_modules() -> None:
    """So that a fork starts with them: a mutant then costs its tests and no imports."""
    for name in ("beartype", "hypothesis", "hypothesis.strategies", "jaxtyping", "numpy", "pytest", "torch"):
        importlib.import_module(name)


def run_tests(tree: Path, tests: list[str]) -> int:
    """pytest's exit code, from a fork that imports papo from `tree`."""
    child = os.fork()
    if child == 0:
        os._exit(in_fork(tree, tests))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_fork(tree: Path, tests: list[str]) -> int:
    """Only in the child."""
    import pytest
    from hypothesis import HealthCheck, Phase, settings

    os.chdir(tree)
    # The parent's own modules named tests.* come from the real tree; the child's must come from the copy.
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "papo", "schemas")]:
        del sys.modules[name]
    sys.path[:0] = [str(tree)]
    sys.dont_write_bytecode = True
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    settings.register_profile(
        "mutants",
        max_examples=20,
        phases=[Phase.explicit, Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    # By the option, as tests/conftest.py loads a profile of its own.
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=mutants"]
    return int(pytest.main([*options, *tests]))


def say(line: str) -> None:
    """To the terminal, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
