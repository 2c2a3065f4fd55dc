"""Runs inside a sandbox: loads a candidate's code and calls what it is asked to call, one line of JSON each way.

It is told arguments, never what is expected, and says what came back, never whether that is right. The candidate
shares this process and can send what it likes; all that it can send is values, which are judged elsewhere.
"""

import builtins
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

if __package__:
    from papo.sandbox import plainly, prelude, transfer
else:
    # Inside, they lie beside this file, and there is no package.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import plainly
    import prelude
    import transfer

LONGEST_MESSAGE = 1000
"""Characters of what an exception says."""


class Driver:
    """Answers requests about one program."""

    def __init__(self) -> None:
        self.space: dict[str, Any] = {"__name__": "candidate", "__builtins__": builtins}
        self.kept: list[Any] = []
        self.numbers: dict[int, int] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request. Raises whatever the program raises."""
        if "code" in request:
            self.load(request["code"], spread=request["prelude"])
            return {"value": None}
        if "next" in request:
            try:
                return {"value": transfer.encode(next(self.kept[request["next"]]), self.keep)}
            except StopIteration:
                return {"ended": True}
        if "get" in request:
            missing = object()
            found = getattr(self.kept[request["of"]], request["get"], missing)
            return {"ended": True} if found is missing else {"value": transfer.encode(found, self.keep)}
        called = request["call"]
        function = find(called, self.space) if type(called) is str else self.kept[called]
        arguments = transfer.decode(request["arguments"], self.given)
        found = function(*arguments, **transfer.decode(request["named"], self.given))
        if request.get("plain"):
            value = transfer.encode(plainly.plain(found))
            in_place = value is None and arguments and type(arguments[0]) in (list, dict)
            return (
                {"value": value, "first": transfer.encode(plainly.plain(arguments[0]))}
                if in_place
                else {"value": value}
            )
        value = transfer.encode(found, self.keep)
        return (
            {"value": value, "arguments": transfer.encode(arguments, self.keep)}
            if request["in_place"]
            else {"value": value}
        )

    def load(self, versions: list[str], *, spread: bool) -> None:
        """Run the first of them that is Python. Raises SyntaxError where none is."""
        module = type(sys)("candidate")
        if spread:
            self.space["__builtins__"] = prelude.prelude()
            sys.setrecursionlimit(prelude.DEEPEST_CALLS)
        module.__dict__.update(self.space)
        sys.modules["candidate"] = module
        self.space = module.__dict__
        exec(compiled(versions), self.space)

    def keep(self, value: Any) -> Mapping[str, Any]:
        """The form of what stays here."""
        number = self.numbers.setdefault(id(value), len(self.kept))
        if number == len(self.kept):
            self.kept.append(value)
        for base in (list, tuple, dict, set, frozenset):
            if isinstance(value, base):
                # By its value, and still the same one when it is handed back.
                return {"o": [number, transfer.encode(_copied(base, value), self.keep)]}
        return {"g" if transfer.has(value, "__next__") else "k" if callable(value) else "h": number}

    def given(self, letter: str, body: Any) -> Any:
        """What a form of the tests stands for."""
        return getattr(builtins, body) if letter == "n" else self.kept[body]


def main() -> None:
    """Answer until the requests end."""
    # Bound before foreign code is loaded, so that what it patches is its own loss.
    dumps, loads, write, driver = json.dumps, json.loads, os.write, Driver()
    for line in os.fdopen(3, "r"):
        try:
            reply = driver.answer(loads(line))
        except BaseException as error:
            reply = raised(error, driver.keep)
        text = dumps(reply).encode() + b"\n"
        while text:
            text = text[write(4, text) :]


def raised(error: BaseException, keep: transfer.Keep) -> dict[str, Any]:
    """What is said of an exception: the names of its classes, and its arguments where they are short."""
    names = [kind.__name__[:80] for kind in type(error).__mro__][:20]
    try:
        arguments = transfer.encode(list(error.args), keep)
        if len(json.dumps(arguments)) > LONGEST_MESSAGE:
            arguments = [f"{error}"[:LONGEST_MESSAGE]]
    except Exception:
        arguments = []
    return {"raised": names, "about": arguments}


def compiled(versions: list[str]) -> Any:
    """The first version that is Python. Raises SyntaxError, of the first, where none is."""
    fault: Exception | None = None
    for text in versions:
        try:
            return compile(text, "candidate", "exec")
        except (SyntaxError, ValueError) as error:
            fault = fault or error
    raise fault or SyntaxError("no program")


def find(name: str, space: dict[str, Any]) -> Callable[..., Any]:
    """A function of the candidate, or a method of its class `Solution`. Raises NameError."""
    if name in space:
        found = space[name]
        return getattr(Itself(space), name) if _wants_self(found) else found
    solution = space.get("Solution")
    if solution is not None and hasattr(solution, name):
        return getattr(solution(), name)
    raise NameError(f"{name} is not defined")


class Itself:
    """The `self` of methods that were written without their class."""

    def __init__(self, space: dict[str, Any]) -> None:
        self.__dict__["_space"] = space

    def __getattr__(self, name: str) -> Any:
        if name not in self._space:
            raise AttributeError(name)
        found = self._space[name]
        return found.__get__(self) if _wants_self(found) else found


def _wants_self(found: Any) -> bool:
    code: Any = getattr(found, "__code__", None)
    return type(found) is type(find) and code.co_argcount > 0 and code.co_varnames[0] == "self"


def _copied(base: Any, value: Any) -> Any:
    return dict(dict[Any, Any].items(value)) if base is dict else base(base.__iter__(value))


if __name__ == "__main__":
    main()
