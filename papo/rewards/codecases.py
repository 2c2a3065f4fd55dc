"""Unit tests of programs in the shapes of the public data sets, read into one of three kinds, or refused.

Refused is also what no program can pass, and what any program would.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from papo.rewards.codechecks import completed, heads_in, refuse_no_python, refuse_own_classes, refuse_untestable
from papo.rewards.codevalues import longest_reply
from papo.sandbox import Limits
from papo.sandbox.transfer import encode, is_a

_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_OWNER = "Solution()."
"""LeetCode's sets name a method so; the driver looks for it in that class as well."""


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
    refuse_own_classes(heads_in(found.get("starter_code")))
    if "entry_point" in found:
        name, prompt = found["entry_point"], found.get("prompt", "")
        name = _function("entry_point", name)
        test = f"{found['test']}\ncheck({name})\n"
        return _asserts(Asserts(prompt=prompt, setup=(completed(prompt),), tests=(test,), entry_point=name))
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


def _function(key: str, name: Any) -> str:
    bare = name.removeprefix(_OWNER) if is_a(name, str) else ""
    if not bare.isidentifier():
        raise ValueError(f"{key} is {name!r:.80}: give the name of a function")
    return bare


def _streams(pairs: Sequence[tuple[Any, Any]]) -> Streams:
    suite = _some(Streams(pairs=tuple((_text(given), _text(expected)) for given, expected in pairs)), len(pairs))
    if not any(expected.strip() for _, expected in suite.pairs):
        raise ValueError("every test expects no output: any program that prints nothing passes")
    for text in {text for pair in suite.pairs for text in pair}:
        _refuse_large(len(_encoded(text)))
    return suite


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"a test's text is none that a program can read or print ({error.reason})") from None


def _refuse_large(size: int) -> None:
    most = Limits().output_bytes
    if size > most:
        raise ValueError(f"the tests are too large: {size} bytes of results, a program may give {most}")


def _asserts(suite: Asserts) -> Asserts:
    if not all(is_a(text, str) for text in (*suite.setup, suite.prompt)):
        raise ValueError("prompt, test_setup_code or test_imports are not text")
    refuse_no_python((*suite.setup, *suite.tests))
    refuse_untestable(suite.setup, suite.tests, suite.entry_point)
    return _some(suite, len(suite.tests))


def _calls(name: Any, pairs: Sequence[tuple[Any, Any]]) -> Calls:
    name = _function("fn_name", name)
    suite = _some(Calls(name=name, calls=tuple(_call(given, expected) for given, expected in pairs)), len(pairs))
    if all(call.expected is None for call in suite.calls):
        raise ValueError("every test expects null: any function that returns nothing passes")
    _refuse_large(sum(longest_reply(call.expected) for call in suite.calls))
    return suite


def _call(given: Any, expected: Any) -> Call:
    if is_a(given, str):
        # LiveCodeBench: one argument a line, as JSON; so is the result.
        arguments = [json.loads(line) for line in given.split("\n") if line.strip()]
        call = Call(arguments=arguments, expected=json.loads(expected), unwrap=False)
    elif is_a(given, list):
        # APPS: keys that are numbers are so again.
        arguments = [_with_numbers(argument) for argument in given]
        call = Call(arguments=arguments, expected=expected, unwrap=is_a(expected, list) and len(expected) == 1)
    else:
        raise ValueError(f"a test's arguments are a {type(given).__name__}: give the list of them")
    # Both have to be what can be sent, and come back.
    encode([call.arguments, call.expected])
    return call


def _with_numbers(argument: Any) -> Any:
    if not is_a(argument, dict) or not all(_NUMBER.fullmatch(key) for key in argument):
        return argument
    return {int(key): item for key, item in argument.items()}


def _some(suite: T, count: int) -> T:
    if not count:
        raise ValueError("there are no tests")
    return suite


def _text(value: Any) -> str:
    return "\n".join(str(line) for line in value) if is_a(value, list) else str(value)
