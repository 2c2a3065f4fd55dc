"""Runs inside another sandbox: assertions of a data set, in which every call of the candidate goes out as a request.

What is expected lives here; the candidate's code does not. Its results come in as built-in types.
"""

import json
import os
import sys
from typing import Any

if __package__:
    from papo.sandbox import handlers, names
    from papo.sandbox.remote import FAILED, FAULT, LEDGER, PASSED, for_effect, named_function, requests, send
else:
    # Inside, they lie beside this file, and there is no package.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import handlers
    import names
    from remote import FAILED, FAULT, LEDGER, PASSED, for_effect, named_function, requests, send

LONGEST_REASON = 300


def main() -> None:
    """Run the tests that the first request holds; one line for each."""
    plan = json.loads(requests().readline())
    space: dict[str, Any] = {"__name__": "tests", handlers.CAUGHT: LEDGER.caught, handlers.EFFECT: for_effect}
    try:
        for code in plan["setup"]:
            exec(compile(handlers.marked(code), "setup", "exec"), space)
    except BaseException as error:
        send(FAULT, line(error))
        return
    if plan["entry_point"]:
        space[plan["entry_point"]] = named_function(plan["entry_point"])
    for code in plan["tests"]:
        mark, reason = examined(code, space)
        send(mark, reason)


def examined(code: str, space: dict[str, Any]) -> tuple[bytes, bytes]:
    """The verdict of one test, and why. What a program raised, and nothing in the test took, fails it."""
    LEDGER.clear()
    failure: BaseException | None = None
    try:
        for name in names.unknown([code], known=space) or names.only_builtin(code):
            space[name] = named_function(name)
        exec(compile(handlers.marked(code), "test", "exec"), space)
    except BaseException as error:
        failure = error
    if LEDGER.fault is not None:
        return FAULT, LEDGER.fault.encode(errors="replace")
    failure = failure or next(iter(LEDGER.open), None)
    return (PASSED, b"") if failure is None else (FAILED, line(failure))


def line(error: BaseException) -> bytes:
    """An exception in one line."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:
        text = type(error).__name__
    return " ".join(text[:LONGEST_REASON].split()).encode(errors="replace")


if __name__ == "__main__":
    main()
