"""Laws of programs: no text raises, tests accept their gold and nothing emptied or changed, replies are values."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papo.rewards import CodeTests
from papo.rewards import codejudge as judge
from papo.rewards.codeblocks import extract_program
from papo.rewards.codecases import Asserts, Calls, Streams, read_tests
from papo.rewards.codevalues import matches
from papo.sandbox import Box, Outcome, transfer

RUN = settings(max_examples=6, deadline=None)
"""Each example starts programs."""
REWARD = CodeTests(cpu_seconds=2.0, wall_seconds=10.0)
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)
"""Lone surrogates and NUL among them."""
PIECES = st.lists(
    st.sampled_from(["```", "python", "py\n", "\n", "</think>", "<think>", "print(", ")", "input()", "def f(x):",
                     " return x", "\0", "\ud800", "~~~", "import os", "{", "}", "'", "6"]), max_size=30,
).map("".join)  # fmt: skip
NAMES = ("entry_point", "test", "prompt", "test_list", "tests", "test_setup_code", "test_setup", "test_imports",
         "fn_name", "official_tests", "input_output", "test_cases", "public_tests", "private_tests", "generated_tests",
         "input",          "output", "inputs", "outputs", "testtype")  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["functional", "[1]"])
)
ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner),
)
LETTERS = st.sampled_from(["d", "t", "s", "f", "i", "b", "c", "h", "", "sf", "value", "raised", "about"])
FORMS: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LETTERS, inner, max_size=2)
)


@given(ANY_JSON)
@settings(max_examples=400, deadline=None)
def test_tests_are_read_or_refused(found: Any) -> None:
    for text in (json.dumps(found), json.dumps({"input_output": json.dumps(found)})):
        reason = REWARD.check_reference(text)
        if reason is None:
            assert isinstance(read_tests(text), Streams | Calls | Asserts)
        else:
            with pytest.raises(ValueError, match=r"test|name|zip"):
                read_tests(text)


@given(ANY_TEXT)
def test_tests_of_any_text_are_read_or_refused(text: str) -> None:
    verdict = REWARD("print(1)", reference_answer=f"{text}[", finish_reason="stop")
    assert (verdict.accuracy, verdict.status) == (None, "unscorable")


@given(ANY_TEXT | PIECES)
def test_a_program_is_found_or_not_in_any_text(completion: str) -> None:
    code = extract_program(completion, "python")
    said = completion.rpartition("</think>")[2]
    assert code is None or (code.strip() and set(code.split()) <= set(said.split()))


@given(
    st.binary(max_size=60), st.sampled_from(["exit", "signal", "cpu", "memory", "output", "files"]), st.integers(0, 255)
)
def test_no_output_is_more_than_wrong(stdout: bytes, ending: Any, code: int) -> None:
    def ran(*_: object, **__: object) -> Outcome:
        return Outcome(ending=ending, code=code, stdout=stdout, stderr=stdout, cpu_seconds=0.0, wall_seconds=0.0,
                       memory_bytes=0, left=0)  # fmt: skip

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(judge, "run", ran)
        verdict = REWARD("print()", reference_answer='{"inputs": [""], "outputs": ["5041"]}', finish_reason="stop")
    assert verdict.status == "ok"
    right = ending == "exit" and code == 0 and stdout.strip() == b"5041"
    assert verdict.accuracy == float(right)


@pytest.mark.slow
@pytest.mark.parametrize("tests", ['{"inputs": [""], "outputs": ["5041"]}', '{"test_list": ["assert f(71) == 5041"]}'])
@given(completion=ANY_TEXT | PIECES)
@RUN
def test_no_completion_raises_or_passes(tests: str, completion: str) -> None:
    verdict = REWARD(completion, reference_answer=tests, finish_reason="stop")
    assert verdict.accuracy == 0.0
    assert verdict.status in ("ok", "no_answer")


@pytest.mark.slow
@given(st.integers(-99, 99), st.integers(1, 99), st.lists(st.integers(-99, 99), min_size=2, max_size=3, unique=True))
@RUN
def test_gold_passes_and_what_is_changed_or_emptied_fails(a: int, b: int, inputs: list[int]) -> None:
    texts = {"inputs": [f"{x}" for x in inputs], "outputs": [f"{a + b * x}" for x in inputs]}
    calls = {"fn_name": "f", "inputs": [[x] for x in inputs], "outputs": [a + b * x for x in inputs]}
    listed = {"test_list": [f"assert f({x}) == {a + b * x}" for x in inputs]}

    def earned(code: str, tests: dict[str, Any]) -> float | None:
        return REWARD(code, reference_answer=json.dumps(tests), finish_reason="stop").accuracy

    assert earned(f"print({a} + {b} * int(input()))", texts) == 1.0
    assert earned(f"print({a + 1} + {b} * int(input()))", texts) == 0.0
    assert earned("", texts) == earned("pass", texts) == 0.0
    for tests in (calls, listed):
        assert earned(f"def f(x): return {a} + {b} * x", tests) == 1.0
        assert earned(f"def f(x): return {a} + {b + 1} * x", tests) == 0.0
        assert earned("def f(x): pass", tests) == 0.0


@given(FORMS)
@settings(max_examples=300, deadline=None)
def test_what_comes_back_is_a_value_or_untransferable(form: Any) -> None:
    def hold(letter: str, body: Any) -> Any:
        return [None, None][body]

    for held in (None, hold):
        try:
            transfer.decode(transfer.parse(json.dumps(form).encode()), held)
        except transfer.Untransferable:
            continue


@given(st.binary(max_size=100) | st.text(st.sampled_from('[]{}",:0e9-'), max_size=80).map(str.encode))
def test_any_line_is_parsed_or_untransferable(line: bytes) -> None:
    try:
        transfer.parse(line)
    except transfer.Untransferable:
        return


PLAIN = st.none() | st.booleans() | st.integers() | st.text() | st.binary()
VALUES: st.SearchStrategy[Any] = st.recursive(
    PLAIN | st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
)


@given(VALUES)
def test_values_come_back_as_they_were_sent(value: Any) -> None:
    found = transfer.decode(transfer.parse(json.dumps(transfer.encode(value)).encode()))
    assert repr(found) == repr(value)


@given(FORMS, ANY_JSON, st.sampled_from([0.0, 0.1]))
@settings(max_examples=300, deadline=None)
def test_any_form_is_the_expected_value_or_not(form: Any, expected: Any, tolerance: float) -> None:
    assert matches(form, expected, tolerance) in (True, False)


@given(FORMS.map(lambda form: json.dumps(form).encode()) | st.binary(max_size=40))
@settings(max_examples=300, deadline=None)
def test_a_reply_is_of_the_right_form_or_a_reason(said: bytes) -> None:
    class Said(Box):
        def __init__(self) -> None:
            return

        def ask(self, line: bytes, *, longest: int | None = None) -> bytes:
            return said

    reply, fault = judge._reply(Said(), {}, longest=10**6)  # pyright: ignore[reportPrivateUsage]  # the border itself
    assert (reply is None) != (fault is None)
    assert reply is None or set(reply) in ({"value"}, {"value", "first"}, {"raised", "about"})
