"""Runs inside a sandbox: loads a candidate's code and calls what it is asked to call, one line of JSON each way.

It is told arguments, never what is expected, and says what came back, never whether that is right. The candidate
shares this process and can send what it likes; all that it can send is values, which are judged elsewhere.
"""

import builtins
import json
import os
import sys
from collections.abc import Callable
from typing import Any

if __package__:
    from papo.sandbox import transfer
else:
    # Inside, it lies beside this file, and there is no package.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import transfer


def main() -> None:
    """Answer until the requests end."""
    # Bound before foreign code is loaded, so that what it patches is its own loss.
    dumps, loads, write, encode, decode = json.dumps, json.loads, os.write, transfer.encode, transfer.decode
    requests = os.fdopen(3, "r")
    space: dict[str, Any] = {"__name__": "candidate", "__builtins__": builtins}
    kept: list[Any] = []

    def keep(value: Any) -> int:
        kept.append(value)
        return len(kept) - 1

    def answer(request: dict[str, Any]) -> Any:
        if "code" in request:
            sys.modules["candidate"] = type(sys)("candidate")
            sys.modules["candidate"].__dict__.update(space)
            exec(compile(request["code"], "candidate", "exec"), sys.modules["candidate"].__dict__)
            return None
        arguments = decode(request["arguments"], kept.__getitem__)
        named = decode(request["named"], kept.__getitem__)
        return find(request["call"], sys.modules["candidate"].__dict__)(*arguments, **named)

    for line in requests:
        try:
            reply: dict[str, Any] = {"value": encode(answer(loads(line)), keep)}
        except BaseException as error:
            kind = type(error)
            reply = {"raised": kind.__name__, "about": f"{error}"[:300]}
        text = dumps(reply).encode() + b"\n"
        while text:
            text = text[write(4, text) :]


def find(name: str, space: dict[str, Any]) -> Callable[..., Any]:
    """A function of the candidate, or a method of its class `Solution`. Raises NameError."""
    if name in space:
        return space[name]
    solution = space.get("Solution")
    if solution is not None and hasattr(solution, name):
        return getattr(solution(), name)
    raise NameError(f"{name} is not defined")


if __name__ == "__main__":
    main()
