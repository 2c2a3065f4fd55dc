"""Runs inside another sandbox: assertions of a data set, in which every call of the candidate goes out as a request.

What is expected lives here; the candidate's code does not. Its results come in as exact built-in types.
"""

import ast
import builtins
import json
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TextIO

if __package__:
    from papo.sandbox import transfer
else:
    # Inside, it lies beside this file, and there is no package.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import transfer


@cache
def requests() -> TextIO:
    """What comes in; opened once, as it is read ahead of."""
    return os.fdopen(3, "r")


class Held:
    """Something that stays with the candidate; it can only be handed back."""

    def __init__(self, number: int) -> None:
        self.number = number


def main() -> None:
    """Run the tests that the first request holds; one line for each."""
    plan = json.loads(requests().readline())
    space: dict[str, Any] = {"__name__": "tests"}
    try:
        for code in plan["setup"]:
            exec(compile(code, "setup", "exec"), space)
    except Exception as error:
        send({"fault": f"{type(error).__name__}: {error}"[:300]})
        return
    if plan["entry_point"]:
        space[plan["entry_point"]] = remote(plan["entry_point"])
    for code in plan["tests"]:
        passed, reason = True, ""
        try:
            for name in unknown(code, space) or only_builtin(code):
                space[name] = remote(name)
            exec(compile(code, "test", "exec"), space)
        except Exception as error:
            passed, reason = False, f"{type(error).__name__}: {error}"[:300]
        send({"passed": passed, "reason": reason})


def unknown(code: str, space: dict[str, Any]) -> set[str]:
    """Names that a test reads and nobody defines: the candidate's."""
    names = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in ast.walk(ast.parse(code)) if isinstance(node, ast.arg)}
    bound |= {node.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return {name for name in read - bound if name not in space and not hasattr(builtins, name)}


def only_builtin(code: str) -> set[str]:
    """The one function that a test calls where that is named like a built-in one: it is the candidate's."""
    calls = [node.func for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    names = {function.id for function in calls if isinstance(function, ast.Name)}
    return names if len(names) == 1 and all(hasattr(builtins, name) for name in names) else set()


def remote(name: str) -> Callable[..., Any]:
    """The candidate's function of that name."""

    def ask(*arguments: Any, **named: Any) -> Any:
        send(
            {
                "call": name,
                "arguments": transfer.encode(list(arguments), number),
                "named": transfer.encode(named, number),
            }
        )
        reply = json.loads(requests().readline())
        if "raised" in reply:
            kind = getattr(builtins, reply["raised"], None)
            raise (kind if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError)(reply["about"])
        return transfer.decode(reply["value"], Held)

    return ask


def number(value: Any) -> int:
    """The number of what is handed back. Raises TypeError for what never came from the candidate."""
    if type(value) is not Held:
        raise TypeError(f"a {type(value).__name__} cannot be handed to the candidate")
    return value.number


def send(message: dict[str, Any]) -> None:
    """One line."""
    text = json.dumps(message).encode() + b"\n"
    while text:
        text = text[os.write(4, text) :]


if __name__ == "__main__":
    main()
