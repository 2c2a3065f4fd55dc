"""The verifiable outcome reward for programs: unit tests, run in a sandbox, judged outside of it."""

import json
from dataclasses import asdict, field
from math import isfinite
from typing import Literal

from papo.rewards.codeblocks import extract_program
from papo.rewards.codecases import Asserts, Suite, read_tests
from papo.rewards.codechecks import missing_imports
from papo.rewards.codejudge import CompileError, Language, Prelude, Setting, Undefined, run_tests
from papo.rewards.verdict import Verdict
from papo.sandbox import Limits, chosen
from papo.sandbox.packages import imported, installed, readable
from papo.values import LATER, value


@value
class CodeTests:
    """1 if the program passes its tests, else 0; or the share that it passes.

    The reference answer is JSON, in the shapes of APPS, CodeContests, TACO, Codeforces, LiveCodeBench, HumanEval and
    MBPP (docs/sandbox.md). What is expected never enters the process that the program runs in. A program that uses up
    its CPU seconds, memory or processes is wrong; one that the host had no time for is undefined (`timeout`).
    """

    kind: Literal["code_tests"] = "code_tests"
    language: Language = "python"
    """python, or c and cpp where gcc is installed (those read and write text only)."""
    aggregate: Literal["all", "share"] = "all"
    """all: 1 if every test passes; the first that fails ends it. share: the share of tests that pass."""
    tolerance: float = 0.0
    """Largest difference of two numbers, absolute or as a share of the expected one; 0 compares exactly."""
    truncated: Literal["zero", "score"] = "zero"
    """Completions cut off at the token limit earn 0, or are scored like any other."""
    cpu_seconds: float = 10.0
    """CPU time of one run: one text test, or all calls together. A busy host takes none of it away."""
    wall_seconds: float = 30.0
    """Time of one run by the clock, for programs that wait."""
    memory_mib: int = 512
    """Of all of a program's processes together."""
    processes: int = 24
    """Processes and threads at once."""
    allow_unsandboxed: bool = False
    """Where the host cannot isolate programs: run them all the same, with limits but with all that this user may do."""
    packages: tuple[str, ...] = field(default=(), metadata=LATER)
    """Python: installed distributions that programs may import, by name (`numpy`). Each has to be named, also what
    another needs; their versions are part of the reward's. Nothing else of the environment can be read."""

    prelude: Prelude = field(default="calls", metadata=LATER)
    """Python: names of `typing`, `collections`, `math`, … that programs may use without an import, as public harnesses
    have it. calls: where tests call a function by `fn_name`. always: under assertions, too. never."""

    def __post_init__(self) -> None:
        if not (isfinite(self.tolerance) and self.tolerance >= 0):
            raise ValueError(f"tolerance is {self.tolerance}: use 0 or a positive number.")
        if self.packages and self.language != "python":
            raise ValueError(f"packages are for python, the language is {self.language}: take packages out.")
        self._limits()

    @property
    def version(self) -> str:
        """Declared version of the rules and their settings: part of the record and of the stage's key."""
        defaults = {"packages": (), "prelude": "calls"}
        settings = {name: found for name, found in asdict(self).items() if (name, found) not in defaults.items()}
        versions = "".join(f" {name}={installed(name)}" for name in self.packages)
        return f"code_tests/2 {json.dumps(settings, sort_keys=True)}{versions}"

    def __call__(self, completion: str, *, reference_answer: str, finish_reason: str) -> Verdict:
        """Judge one completion, from any thread. Raises SandboxError where programs cannot be isolated, or a
        package is missing."""
        try:
            suite = self._suite(reference_answer)
        except ValueError as error:
            return Verdict(accuracy=None, correct=None, status="unscorable", reason=f"{error}")
        code = extract_program(completion, self.language)
        if finish_reason == "length" and self.truncated == "zero":
            return Verdict(accuracy=0.0, correct=False, status="truncated", reason="cut off at the token limit")
        if code is None:
            return Verdict(accuracy=0.0, correct=False, status="no_answer", reason="no program")
        setting = Setting(
            limits=self._limits(),
            isolation=chosen(allow_unsandboxed=self.allow_unsandboxed),
            language=self.language,
            tolerance=self.tolerance,
            stop_early=self.aggregate == "all",
            prelude=self.prelude,
            readable=readable(self.packages),
        )
        try:
            tested = run_tests(code, suite, setting)
        except CompileError as error:
            return Verdict(accuracy=0.0, correct=False, status="compile_error", extracted=code, reason=f"{error}")
        except Undefined as undefined:
            busy, reason = undefined.args
            status = "timeout" if busy else "unscorable"
            return Verdict(accuracy=None, correct=None, status=status, extracted=code, reason=reason)
        correct = tested.passed == tested.total
        accuracy = tested.passed / tested.total if self.aggregate == "share" else float(correct)
        return Verdict(accuracy=accuracy, correct=correct, status="ok", extracted=code, reason=tested.reason)

    def check_reference(self, reference_answer: str) -> str | None:
        """Why nothing can be tested against this reference; None if it can be."""
        try:
            self._suite(reference_answer)
        except ValueError as error:
            return f"{error}"
        return None

    def _suite(self, reference_answer: str) -> Suite:
        suite = read_tests(reference_answer)
        if isinstance(suite, Asserts) and (
            missing := missing_imports((*suite.setup, *suite.tests), imported(self.packages))
        ):
            raise ValueError(f"the tests import {', '.join(missing)}: name the package in packages")
        return suite

    def self_test(self) -> str | None:
        """Why no program can be run here; None if one can. A run asks before it starts."""
        tests = json.dumps({"inputs": ["1"], "outputs": ["1"]})
        program = '#include <stdio.h>\nint main(){puts("1");}'
        try:
            if self.language == "python":
                program = "\n".join(("print(input())", *(f"import {name}" for name in imported(self.packages))))
            verdict = self(program, reference_answer=tests, finish_reason="stop")
        except Exception as error:
            return f"{error}"
        return None if verdict.correct else f"a sample program fails: {verdict.status} {verdict.reason or ''}"

    def _limits(self) -> Limits:
        return Limits(
            cpu_seconds=self.cpu_seconds,
            wall_seconds=self.wall_seconds,
            memory_bytes=self.memory_mib * 2**20,
            processes=self.processes,
        )
