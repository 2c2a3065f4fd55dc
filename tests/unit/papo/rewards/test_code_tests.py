"""Programs judged by their tests, in the shapes of the public sets; a busy host is never a wrong answer."""

import json
import shutil
from typing import Any

import pytest

from papo.rewards import CodeTests, Verdict
from papo.rewards import codejudge as judge
from papo.rewards.codeblocks import extract_program
from papo.rewards.codecases import read_tests
from papo.rewards.codevalues import matches, same_text
from papo.sandbox import Limits, Outcome, SandboxError, chosen, isolation, run
from papo.sandbox.isolation import python

REWARD = CodeTests(cpu_seconds=2.0, wall_seconds=8.0)
ADD = "a, b = map(int, input().split())\nprint(a + b)"
PAIRS = [("1 2\n", "3\n"), ("5 6\n", "11\n")]
SHAPES: dict[str, Any] = {
    "APPS": {"inputs": [given for given, _ in PAIRS], "outputs": [expected for _, expected in PAIRS]},
    "lines": {"inputs": [["1 2"], ["5 6"]], "outputs": [["3"], ["11"]]},
    "APPS row": {"input_output": json.dumps({"inputs": ["1 2"], "outputs": ["3"]})},
    "CodeContests": {
        "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
        "private_tests": {"input": [], "output": []},
        "generated_tests": {"input": ["5 6\n"], "output": ["11\n"]},
    },
    "Codeforces": {"official_tests": [{"input": given, "output": expected} for given, expected in PAIRS]},
    "LiveCodeBench": [{"input": given, "output": expected, "testtype": "stdin"} for given, expected in PAIRS],
}
CALLS: dict[str, Any] = {
    "APPS": {"fn_name": "join", "inputs": [[[1, 2], [3]], [[], [4]]], "outputs": [[[1, 2, 3]], [4]]},
    "LiveCodeBench": {
        "fn_name": "join",
        "tests": [{"input": "[1, 2]\n[3]", "output": "[1, 2, 3]", "testtype": "functional"}],
    },
}
SOLUTION = "class Solution:\n    def join(self, a, b):\n        return a + b"


def judged(completion: str, tests: Any, reward: CodeTests = REWARD, finish_reason: str = "stop") -> Verdict:
    return reward(completion, reference_answer=json.dumps(tests), finish_reason=finish_reason)


@pytest.mark.parametrize("shape", SHAPES)
def test_text_tests_of_the_public_sets(shape: str) -> None:
    assert judged(ADD, SHAPES[shape]).correct
    assert judged(ADD.replace("+", "-"), SHAPES[shape]).accuracy == 0.0


@pytest.mark.parametrize("shape", CALLS)
def test_calls_of_the_public_sets(shape: str) -> None:
    assert judged(SOLUTION, CALLS[shape]).correct
    assert judged(SOLUTION.replace("a + b", "b + a"), CALLS[shape]).accuracy == 0.0


def test_human_eval_and_its_helpers_are_the_data_sets_own() -> None:
    """A program that redefines a helper of the tests changes its own copy only."""
    row = {
        "prompt": "def close(a, b):\n    return abs(a - b) < 0.1\n\n\ndef half(x):\n    '''Half of it.'''\n",
        "test": "def check(candidate):\n    for x in range(9):\n        assert close(candidate(x), x / 2)\n",
        "entry_point": "half",
    }
    assert judged("    return x / 2", row).correct
    assert judged("def half(x):\n    return x / 2", row).correct
    assert judged("def close(a, b):\n    return True\n\ndef half(x):\n    return 0", row).accuracy == 0.0


def test_mbpp_with_its_set_up_and_values_that_stay_inside() -> None:
    pair = "class Pair:\n    def __init__(self, a): self.a = a\ndef value(p): return p.a\ndef sum(a, b): return a - -b"
    tests = {"test_setup_code": "import math", "test_list": ["assert value(Pair(5)) == 5", "assert sum(1, 2) == 3"]}
    assert judged(pair, tests).correct
    assert judged(pair.replace("return p.a", "return p"), tests).accuracy == 0.0


def test_a_share_of_the_tests() -> None:
    tests = {"inputs": ["1 2", "0 0", "2 2", "3 1"], "outputs": ["2", "0", "4", "3"]}
    assert judged(ADD.replace("+", "*"), tests).correct
    share = judged(ADD, tests, CodeTests(aggregate="share"))
    assert (share.accuracy, share.correct, share.reason) == (0.5, False, "another output")


@pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("g++") is None, reason="no compiler is installed")
def test_compiled_languages_and_a_compile_error() -> None:
    c = '#include <stdio.h>\nint main() { int a, b; scanf("%d %d", &a, &b); printf("%d\\n", a + b); }'
    cpp = "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b << std::endl; }"
    assert judged(c, SHAPES["APPS"], CodeTests(language="c")).correct
    assert judged(cpp, SHAPES["APPS"], CodeTests(language="cpp")).correct
    assert judged(cpp.replace("a + b", "a - b"), SHAPES["APPS"], CodeTests(language="cpp")).accuracy == 0.0
    refused = judged("int main( {", SHAPES["APPS"], CodeTests(language="c"))
    assert (refused.accuracy, refused.status) == (0.0, "compile_error")


@pytest.mark.parametrize(
    ("completion", "code"),
    [
        ("print(1)", "print(1)"),
        ("```python\nprint(1)\n```\nor\n```py\nprint(2)\n```", "print(2)\n"),
        ("```python\nprint(1)\n```\nwhich prints\n```\n1\n```", "print(1)\n"),
        ("<think>\n```python\nprint(0)\n```\n</think>\n```\nprint(1)\n```", "print(1)\n"),
        ("  \n", None),
    ],
)
def test_which_program_is_meant(completion: str, code: str | None) -> None:
    assert extract_program(completion, "python") == code


def test_output_is_compared_by_words_and_lines() -> None:
    assert same_text("1  2 \n3\n\n", "1 2\n3")
    assert not same_text("1 2 3", "1 2\n3")
    assert not same_text("0.3333333", "0.3333334")
    assert same_text("0.3333333", "0.3333334", tolerance=1e-6)
    assert not same_text("nan", "1.0", tolerance=1e-6)


@pytest.mark.parametrize(
    ("form", "expected", "same"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (1, True, False),
        ({"t": [1, 2]}, [1, 2], True),
        ({"s": [1, 2]}, [1, 2], False),
        ([1, 2], [1, 2, 3], False),
        ({"d": [["a", 1]]}, {"a": 1}, True),
        ({"d": [["a", 1]]}, {"a": 2}, False),
        ({"i": hex(10**30)}, 10**30, True),
        ("1", 1, False),
        (None, None, True),
        ({"h": 0}, 1, False),
        ({"i": "9" * 10**6}, 1, False),
        (float("nan"), 1.0, False),
        ({"d": 3}, {}, False),
    ],
)
def test_values_are_compared_by_exact_types(form: Any, expected: Any, same: bool) -> None:
    assert matches(form, expected, 0.0) is same


@pytest.mark.parametrize("text", ["", "7", "{}", "[]", '{"inputs": ["1"], "outputs": []}', '{"entry_point": "f"}', "{"])
def test_tests_that_cannot_be_read_are_no_free_reward(text: str) -> None:
    verdict = REWARD("print(1)", reference_answer=text, finish_reason="stop")
    assert (verdict.accuracy, verdict.status) == (None, "unscorable")
    assert REWARD.check_reference(text) is not None
    with pytest.raises(ValueError, match=r"."):
        read_tests(text)


def test_truncated_and_empty_completions_earn_nothing() -> None:
    assert judged(ADD, SHAPES["APPS"], finish_reason="length").status == "truncated"
    assert judged(" ", SHAPES["APPS"]).status == "no_answer"


def test_a_busy_host_is_undefined_after_a_second_try(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def busy(*_: object, **__: object) -> Outcome:
        tried.append(1)
        return Outcome(
            ending="busy", code=0, stdout=b"", stderr=b"", cpu_seconds=0.1, wall_seconds=9.0, memory_bytes=0, left=0
        )

    monkeypatch.setattr(judge, "run", busy)
    verdict = judged(ADD, SHAPES["APPS"])
    assert (verdict.accuracy, verdict.status, len(tried)) == (None, "timeout", 2)


def test_without_isolation_programs_are_refused_unless_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "fault_of", lambda _: "tried in a test")
    with pytest.raises(SandboxError, match="allow_unsandboxed: true"):
        chosen(allow_unsandboxed=False)
    reason = CodeTests().self_test()
    assert reason is not None
    assert "tried in a test" in reason
    allowed = CodeTests(allow_unsandboxed=True, cpu_seconds=1.0, wall_seconds=6.0)
    assert judged(ADD, SHAPES["APPS"], allowed).correct
    assert judged("while True: pass", SHAPES["APPS"], allowed).reason == "cpu limit"


def test_without_isolation_the_tree_is_still_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPO_SECRET", "tell nobody")
    code = (
        "import os, time\nprint('PAPO_SECRET' in os.environ)\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)"
    )
    outcome = run(
        [python(), "-I", "{program}/main.py"],
        files={"main.py": code.encode()},
        limits=Limits(wall_seconds=8.0),
        isolation="none",
    )
    assert (outcome.ending, outcome.left, outcome.stdout) == ("exit", 1, b"False\n")


@pytest.mark.parametrize("setting", [{"cpu_seconds": 0.0}, {"wall_seconds": 0.0}, {"memory_mib": 0}, {"processes": 0}])
def test_limits_are_positive(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="positive"):
        CodeTests(**setting)


def test_a_run_asks_whether_programs_can_be_run() -> None:
    assert REWARD.self_test() is None
    assert "code_tests/2" in REWARD.version


def test_the_reward_stays_in_its_range_whatever_the_tests_hold() -> None:
    """BUG-080: several expected values, as text, number, list or null."""
    for expected in ("3", 3, ["3"], None):
        verdict = judged("print(3)", {"inputs": [""], "outputs": [expected]})
        assert verdict.accuracy == float(expected is not None)
