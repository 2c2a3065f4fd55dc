"""Unit tests of programs in the shapes of the public data sets, read into one of three kinds; a program's text."""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from papo.sandbox.transfer import is_a

_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w+#.-]*)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_TAGS = {
    "python": ("python", "py", "python3"),
    "c": ("c",),
    "cpp": ("cpp", "c++", "cc", "cxx"),
    "coq": ("coq", "rocq", "gallina"),
    "lean4": ("lean", "lean4"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Text in, text out (APPS, CodeContests, TACO, Codeforces, LiveCodeBench)."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    arguments: Sequence[Any]
    expected: Any
    unwrap: bool
    """APPS writes some results in a list of one; either is taken there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Calls of one function (APPS, LiveCodeBench)."""

    name: str
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asserts:
    """Assertions about functions (HumanEval, MBPP)."""

    prompt: str
    """What stands before the program, and holds helpers of the tests."""
    setup: tuple[str, ...]
    tests: tuple[str, ...]
    entry_point: str | None


Suite = Streams | Calls | Asserts
T = TypeVar("T")


@lru_cache(maxsize=512)
def read_tests(reference_answer: str) -> Suite:
    """The tests of a reference. Raises ValueError with what is wrong."""
    try:
        found = json.loads(reference_answer)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the tests are no JSON ({error})") from None
    if not is_a(found, dict, list):
        raise ValueError(f"the tests are a {type(found).__name__}: give an object or a list")
    try:
        return _from_records(found, None) if is_a(found, list) else _from_object(found)
    except (KeyError, TypeError, AttributeError, RecursionError, json.JSONDecodeError) as error:
        raise ValueError(f"the tests cannot be read ({type(error).__name__}: {error})") from None


def _from_object(found: Mapping[str, Any]) -> Suite:
    if "entry_point" in found:
        name, prompt = found["entry_point"], found.get("prompt", "")
        if not (is_a(name, str) and name.isidentifier()):
            raise ValueError(f"entry_point is {name!r:.80}: give the name of a function")
        test = f"{found['test']}\ncheck({name})\n"
        return _asserts(Asserts(prompt=prompt, setup=(prompt,), tests=(test,), entry_point=name))
    tests = found.get("test_list", found.get("tests"))
    if is_a(tests, list) and all(is_a(test, str) for test in tests):
        setup = found.get("test_setup_code") or found.get("test_setup") or ""
        lines = (*found.get("test_imports", ()), setup)
        return _asserts(Asserts(prompt="", setup=lines, tests=tuple(tests), entry_point=None))
    if is_a(tests, list):
        return _from_records(tests, found.get("fn_name"))
    for name in ("official_tests", "input_output", "test_cases"):
        if name in found:
            inner = json.loads(found[name]) if is_a(found[name], str) else found[name]
            named = {"fn_name": found["fn_name"]} if "fn_name" in found else {}
            return _from_records(inner, named.get("fn_name")) if is_a(inner, list) else _from_object({**inner, **named})
    if any(name.endswith("_tests") for name in found):
        groups = [found[name] for name in ("public_tests", "private_tests", "generated_tests") if found.get(name)]
        pairs = [pair for group in groups for pair in zip(group["input"], group["output"], strict=True)]
        return _streams(pairs)
    if "inputs" not in found or "outputs" not in found:
        raise ValueError("the tests name neither inputs and outputs, entry_point, test_list nor public_tests")
    pairs = list(zip(found["inputs"], found["outputs"], strict=True))
    return _calls(found["fn_name"], pairs) if found.get("fn_name") else _streams(pairs)


def _from_records(records: Sequence[Any], name: str | None) -> Suite:
    pairs = [(record["input"], record["output"]) for record in records]
    functional = any(record.get("testtype") == "functional" for record in records)
    if functional and not name:
        raise ValueError("functional tests without fn_name")
    return _calls(name, pairs) if name else _streams(pairs)


def _streams(pairs: Sequence[tuple[Any, Any]]) -> Streams:
    return _some(Streams(pairs=tuple((_text(given), _text(expected)) for given, expected in pairs)), len(pairs))


def _asserts(suite: Asserts) -> Asserts:
    if not all(is_a(text, str) for text in suite.setup):
        raise ValueError("prompt, test_setup_code or test_imports are not text")
    for test in suite.tests:
        try:
            ast.parse(test)
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError(f"a test is no Python ({error})") from None
    return _some(suite, len(suite.tests))


def _calls(name: Any, pairs: Sequence[tuple[Any, Any]]) -> Calls:
    if not is_a(name, str):
        raise ValueError(f"fn_name is {name!r:.80}: give the name of a function")
    return _some(Calls(name=name, calls=tuple(_call(given, expected) for given, expected in pairs)), len(pairs))


def _call(given: Any, expected: Any) -> Call:
    if is_a(given, str):
        # LiveCodeBench: one argument a line, as JSON; so is the result.
        arguments = [json.loads(line) for line in given.split("\n") if line.strip()]
        return Call(arguments=arguments, expected=json.loads(expected), unwrap=False)
    return Call(arguments=list(given), expected=expected, unwrap=is_a(expected, list) and len(expected) == 1)


def _some(suite: T, count: int) -> T:
    if not count:
        raise ValueError("there are no tests")
    return suite


def _text(value: Any) -> str:
    return "\n".join(str(line) for line in value) if is_a(value, list) else str(value)


def extract_program(completion: str, language: str) -> str | None:
    """The last fenced block of the language, else the last fenced block, else all that is written; None for nothing.

    Only what follows the last `</think>` is looked at.
    """
    text = completion.rpartition("</think>")[2]
    blocks = [(found[2].lower(), found[3]) for found in _FENCE.finditer(text)]
    tagged = [code for tag, code in blocks if tag in _TAGS[language]]
    code = (tagged or [code for _, code in blocks] or [text])[-1]
    return code if code.strip() else None


def same_text(found: str, expected: str, *, tolerance: float = 0.0) -> bool:
    """Equal line by line, by the words of each: space within, around and after them, and blank last lines, are free."""
    left, right = ([line.split() for line in text.rstrip().split("\n")] for text in (found, expected))
    if len(left) != len(right):
        return False
    return all(
        len(a) == len(b) and all(_same_word(one, other, tolerance) for one, other in zip(a, b, strict=True))
        for a, b in zip(left, right, strict=True)
    )


def _same_word(one: str, other: str, tolerance: float) -> bool:
    if one == other or not tolerance:
        return one == other
    try:
        return close(float(one), float(other), tolerance)
    except ValueError:
        return False


def close(one: int | float, other: int | float, tolerance: float) -> bool:
    """Within `tolerance`, absolute or as a share of `other`."""
    try:
        return one == other or abs(one - other) <= tolerance * max(1.0, abs(other))
    except OverflowError:
        return False
