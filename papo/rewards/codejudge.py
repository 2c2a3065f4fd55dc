"""Runs a program against its tests: in a sandbox, with what is expected kept outside of it."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from papo.rewards.codecases import Asserts, Call, Calls, Streams, Suite, close, same_text
from papo.sandbox import Box, Isolation, Limits, Outcome, run, transfer
from papo.sandbox.isolation import python
from papo.sandbox.transfer import is_a
from papo.verifiers.pool import processors

Language = Literal["python", "c", "cpp"]
_COMPILERS = {"c": "gcc -O2 -x c", "cpp": "g++ -O2 -x c++"}
_INSIDE = Path(transfer.__file__).resolve().parent
_SLOTS = threading.BoundedSemaphore(processors())
_ALONE = threading.Lock()


class Undefined(Exception):
    """Nothing can be said of the program, for a reason that is not its own. The first argument: the host is busy."""


class CompileError(Exception):
    """The compiler refused the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    passed: int
    total: int
    reason: str | None
    """Why the first that failed did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    limits: Limits
    isolation: Isolation
    language: Language
    tolerance: float
    stop_early: bool
    readable: Mapping[str, str]
    """Packages that the program may import."""


def run_tests(code: str, suite: Suite, setting: Setting) -> Tested:
    """How many tests the program passes. A busy host is given a second try, alone. Raises Undefined, CompileError."""
    try:
        with _SLOTS:
            return _tested(code, suite, setting)
    except Undefined as first:
        if not first.args[0]:
            raise
    with _ALONE:
        return _tested(code, suite, setting)


def _tested(code: str, suite: Suite, setting: Setting) -> Tested:
    if isinstance(suite, Streams):
        total, results = len(suite.pairs), _streams(code, suite, setting)
    elif setting.language != "python":
        raise Undefined(False, f"tests that call functions need Python, the program is {setting.language}")
    elif isinstance(suite, Calls):
        total, results = len(suite.calls), _calls(code, suite, setting)
    else:
        total, results = len(suite.tests), _asserts(code, suite, setting)
    passed, reason = 0, None
    for fault in results:
        passed += fault is None
        reason = reason or fault
        if fault is not None and setting.stop_early:
            break
    return Tested(passed=passed, total=total, reason=reason)


def _streams(code: str, suite: Streams, setting: Setting) -> Iterator[str | None]:
    if setting.language == "python":
        argv, files = _interpreter(setting, "main.py"), {"main.py": _utf8(code)}
    else:
        argv, files = ["{program}/main"], {"main": _compiled(code, setting)}
    for given, expected in suite.pairs:
        outcome = _ran(argv, files, setting, stdin=_utf8(given))
        _refuse_busy(outcome)
        if not outcome.finished:
            yield _ending(outcome)
        else:
            same = same_text(outcome.stdout.decode(errors="replace"), expected, tolerance=setting.tolerance)
            yield None if same else "another output"


def _compiled(code: str, setting: Setting) -> bytes:
    command = f"{_COMPILERS[setting.language]} -o main {{program}}/source -lm 1>&2 && cat main"
    files = {"source": _utf8(code)}
    outcome = _ran(["/bin/sh", "-c", command], files, setting)
    _refuse_busy(outcome)
    if outcome.ending == "exit" and outcome.code == 127:
        raise Undefined(False, f"no compiler for {setting.language} is installed ({_COMPILERS[setting.language][:3]})")
    if not outcome.finished:
        raise CompileError(_ending(outcome))
    return outcome.stdout


def _calls(code: str, suite: Calls, setting: Setting) -> Iterator[str | None]:
    with _talking("candidate.py", setting) as box:
        fault = _load(box, code)
        for call in suite.calls:
            yield fault or _called(box, suite.name, call, setting)


def _called(box: Box, name: str, call: Call, setting: Setting) -> str | None:
    arguments = transfer.encode(list(call.arguments))
    reply, fault = _reply(box, {"call": name, "arguments": arguments, "named": {"d": []}})
    if reply is None or "raised" in reply:
        return fault or f"raised {reply and reply['raised']}"
    options = (call.expected, call.expected[0]) if call.unwrap else (call.expected,)
    return None if any(matches(reply["value"], option, setting.tolerance) for option in options) else "another value"


def _asserts(code: str, suite: Asserts, setting: Setting) -> Iterator[str | None]:
    """The assertions run in a sandbox of their own, and never meet the program: only its values."""
    plan = {"setup": suite.setup, "tests": suite.tests, "entry_point": suite.entry_point}
    with _talking("candidate.py", setting) as box, _talking("examiner.py", setting) as tests:
        fault = _load(box, f"{suite.prompt}\n{code}" if suite.prompt else code)
        message: dict[str, Any] = {}
        line = None if fault else tests.ask(json.dumps(plan).encode())
        for _ in suite.tests:
            while line is not None and "call" in (message := json.loads(line)):
                reply, fault = _reply(box, message)
                line = tests.ask(json.dumps(reply).encode()) if reply else None
            if line is None:
                yield fault or _stopped(tests, "the tests ended early")
                return
            if "fault" in message:
                raise Undefined(False, f"the tests' own code fails: {message['fault']}")
            yield None if message["passed"] else message["reason"] or "failed"
            line = tests.hear()


def _talking(driver: str, setting: Setting) -> Box:
    files = {name: (_INSIDE / name).read_bytes() for name in (driver, "transfer.py")}
    limits, isolation = setting.limits, setting.isolation
    argv = _interpreter(setting, driver)
    return Box(argv, files=files, limits=limits, isolation=isolation, talking=True, readable=setting.readable)


def _ran(argv: Sequence[str], files: Mapping[str, bytes], setting: Setting, *, stdin: bytes = b"") -> Outcome:
    limits, isolation = setting.limits, setting.isolation
    return run(argv, files=files, limits=limits, isolation=isolation, stdin=stdin, readable=setting.readable)


def _interpreter(setting: Setting, file: str) -> list[str]:
    """Python looks at its environment only for the packages that it is given."""
    return [python(), *(("-s", "-P") if setting.readable else ("-I",)), "-B", f"{{program}}/{file}"]


def _load(box: Box, code: str) -> str | None:
    reply, fault = _reply(box, {"code": code})
    return fault or (f"raised {reply['raised']} when loaded" if reply and "raised" in reply else None)


def _reply(box: Box, request: dict[str, Any]) -> tuple[dict[str, Any] | None, str | None]:
    """What the candidate's process says, known to be of the right form, or why there is nothing."""
    line = box.ask(json.dumps(request).encode())
    if line is None:
        return None, _stopped(box, "the program ended early")
    try:
        reply = transfer.parse(line)
    except transfer.Untransferable as error:
        return None, f"{error}"
    if not is_a(reply, dict) or set(reply) not in ({"value"}, {"raised", "about"}):
        return None, "no such reply"
    if "raised" in reply and not all(is_a(text, str) for text in reply.values()):
        return None, "no such reply"
    return reply, None


def _stopped(box: Box, otherwise: str) -> str:
    outcome = box.finish()
    _refuse_busy(outcome)
    return otherwise if outcome.finished else _ending(outcome)


def matches(form: Any, expected: Any, tolerance: float) -> bool:
    """Whether what came back (`papo.sandbox.transfer`) is the expected JSON value, by exact built-in types.

    A tuple is a list, as JSON has none; an integer may be an equal float; a boolean is no number.
    """
    if expected is None or is_a(expected, bool, str):
        return type(form) is type(expected) and form == expected
    if is_a(expected, int, float):
        try:
            number = transfer.decode(form)
        except transfer.Untransferable:
            return False
        return is_a(number, int, float) and close(number, expected, tolerance)
    letter, body = next(iter(form.items())) if is_a(form, dict) and len(form) == 1 else ("l", form)
    if not is_a(body, list) or len(body) != len(expected):
        return False
    if is_a(expected, list):
        pairs = zip(body, expected, strict=True)
        return letter in ("l", "t") and all(matches(one, other, tolerance) for one, other in pairs)
    found = {pair[0]: pair[1] for pair in body if is_a(pair, list) and len(pair) == 2 and is_a(pair[0], str)}
    same_keys = letter == "d" and set(found) == set(expected)
    return same_keys and all(matches(found[key], expected[key], tolerance) for key in expected)


def _refuse_busy(outcome: Outcome) -> None:
    if outcome.ending == "busy":
        raise Undefined(True, "the host was too busy to run the program")


def _ending(outcome: Outcome) -> str:
    last = outcome.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
    detail = f" {outcome.code}" if outcome.ending in ("exit", "signal") else " limit"
    return f"{outcome.ending}{detail}{': ' if last else ''}{last}"


def _utf8(text: str) -> bytes:
    return text.encode(errors="replace")
