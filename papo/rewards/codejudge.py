"""Runs a program against its tests: in a sandbox, with what is expected kept outside of it."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from papo.rewards.codecases import Asserts, Call, Calls, Streams, Suite
from papo.rewards.codevalues import SHORTEST_BOUND, longest_reply, matches, same_text
from papo.sandbox import Box, Isolation, Limits, Outcome, remote, run, transfer
from papo.sandbox.isolation import python
from papo.sandbox.transfer import is_a
from papo.verifiers.pool import processors

Language = Literal["python", "c", "cpp"]
Prelude = Literal["calls", "always", "never"]
_COMPILERS = {"c": "gcc -O2 -x c", "cpp": "g++ -O2 -x c++"}
_INSIDE = Path(transfer.__file__).resolve().parent
_INSIDE_FILES = {
    "candidate.py": ("transfer.py", "plainly.py", "prelude.py"),
    "examiner.py": ("transfer.py", "remote.py", "handlers.py", "names.py"),
}
"""What lies beside each driver."""
MOST_CALLS = 50_000
"""Of the program by the assertions of one row: each is carried from one sandbox to the other by this process."""
_LONGEST_REASON = 300
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
    prelude: Prelude
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
        fault = _load(box, [code], spread=setting.prelude != "never")
        for call in suite.calls:
            yield fault or _called(box, suite.name, call, setting)


def _called(box: Box, name: str, call: Call, setting: Setting) -> str | None:
    request: dict[str, Any] = {
        "call": name,
        "arguments": transfer.encode(list(call.arguments)),
        "named": {"d": []},
        "plain": True,
    }
    reply, fault = _reply(box, request, longest=longest_reply(call.expected))
    if reply is None:
        return fault
    if "raised" in reply:
        return f"raised {_kind(reply)}"
    options = (call.expected, call.expected[0]) if call.unwrap else (call.expected,)
    # A function that returns nothing is judged by what it did to its first argument.
    found = reply["first"] if "first" in reply and call.expected is not None else reply["value"]
    return None if any(matches(found, option, setting.tolerance) for option in options) else "another value"


def _asserts(code: str, suite: Asserts, setting: Setting) -> Iterator[str | None]:
    """The assertions run in a sandbox of their own, and never meet the program: only its values.

    What passes from one to the other passes unread: whoever reads it does so in a sandbox, within its limits.
    """
    plan = {"setup": suite.setup, "tests": suite.tests, "entry_point": suite.entry_point}
    with _talking("candidate.py", setting) as box, _talking("examiner.py", setting) as tests:
        fault = _load(box, _versions(suite.prompt, code), spread=setting.prelude == "always")
        line = None if fault else tests.ask(json.dumps(plan).encode())
        carried = 0
        for _ in suite.tests:
            while line is not None and line[:1] == remote.CALL:
                carried += 1
                reply = box.ask(line[1:]) if carried <= MOST_CALLS else None
                if reply is None:
                    too_many = f"the program was called {MOST_CALLS} times"
                    fault = too_many if carried > MOST_CALLS else _stopped(box, "the program ended early")
                line = None if reply is None else tests.ask(reply)
            if line is None:
                yield fault or _stopped(tests, "the tests ended early")
                return
            said = line[1 : _LONGEST_REASON + 1].decode(errors="replace")
            if line[:1] == remote.FAULT:
                raise Undefined(False, f"the tests' own code fails: {said}")
            yield None if line[:1] == remote.PASSED else said or "failed"
            line = tests.hear()


def _versions(prompt: str, code: str) -> list[str]:
    """The program with its prompt: it goes on where that ends, or stands alone; the first that is Python is run."""
    return [f"{prompt}\n{code}", f"{prompt}\n    pass\n{code}", code] if prompt else [code]


def _talking(driver: str, setting: Setting) -> Box:
    files = {name: (_INSIDE / name).read_bytes() for name in (driver, *_INSIDE_FILES[driver])}
    limits, isolation = setting.limits, setting.isolation
    argv = _interpreter(setting, driver)
    return Box(argv, files=files, limits=limits, isolation=isolation, talking=True, readable=setting.readable)


def _ran(argv: Sequence[str], files: Mapping[str, bytes], setting: Setting, *, stdin: bytes = b"") -> Outcome:
    limits, isolation = setting.limits, setting.isolation
    return run(argv, files=files, limits=limits, isolation=isolation, stdin=stdin, readable=setting.readable)


def _interpreter(setting: Setting, file: str) -> list[str]:
    """Python looks at its environment only for the packages that it is given."""
    quiet = ("-s", "-P") if setting.readable else ("-I",)
    # Numbers may have as many digits as the CPU seconds allow.
    return [python(), *quiet, "-B", "-X", "int_max_str_digits=0", f"{{program}}/{file}"]


def _load(box: Box, versions: list[str], *, spread: bool) -> str | None:
    reply, fault = _reply(box, {"code": versions, "prelude": spread}, longest=SHORTEST_BOUND)
    return fault or (f"raised {_kind(reply)} when loaded" if reply and "raised" in reply else None)


def _reply(box: Box, request: dict[str, Any], *, longest: int) -> tuple[dict[str, Any] | None, str | None]:
    """What the candidate's process says, known to be of the right form, or why there is nothing."""
    line = box.ask(json.dumps(request).encode(), longest=longest)
    if line is None:
        return None, _stopped(box, "the program ended early")
    if len(line) > longest:
        return None, "another value: it is too large to be the expected one"
    try:
        reply = transfer.parse(line)
    except transfer.Untransferable as error:
        return None, f"{error}"
    if not is_a(reply, dict) or set(reply) not in ({"value"}, {"value", "first"}, {"raised", "about"}):
        return None, "no such reply"
    return reply, None


def _kind(reply: dict[str, Any]) -> str:
    """The name of what was raised, as far as it is one."""
    names = reply["raised"]
    name: Any = names[0] if is_a(names, list) and names else None
    return name[:80] if is_a(name, str) and name.isidentifier() else "something"


def _stopped(box: Box, otherwise: str) -> str:
    outcome = box.finish()
    _refuse_busy(outcome)
    return otherwise if outcome.finished else _ending(outcome)


def _refuse_busy(outcome: Outcome) -> None:
    if outcome.ending == "busy":
        raise Undefined(True, "the host was too busy to run the program")


def _ending(outcome: Outcome) -> str:
    last = outcome.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
    detail = f" {outcome.code}" if outcome.ending in ("exit", "signal") else " limit"
    return f"{outcome.ending}{detail}{': ' if last else ''}{last}"


def _utf8(text: str) -> bytes:
    return text.encode(errors="replace")
