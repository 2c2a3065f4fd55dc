"""The candidate as the assertions see it: functions whose calls go out as requests, and values that stay with it.

What a program raises is no control flow of the tests: an exception that leaves a call is kept in `Ledger` until a
handler of the tests has it in hand (`papo.sandbox.handlers`). One that something else swallowed (`all`, `next`,
`getattr` with a default) fails the test at its end.
"""

import builtins
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, BinaryIO, cast

if __package__:
    from papo.sandbox import transfer
else:
    # Inside, it lies beside this file, and there is no package.
    import transfer

CALL, PASSED, FAILED, FAULT = b"?", b"+", b"-", b"!"
"""How a line to the judge begins: a request for the candidate, a verdict on a test, or a fault of the tests' own."""
_MUTABLE = (list, dict, set, bytearray)


class ProgramError(Exception):
    """What a program raised, where that is no built-in exception."""


class ProgramExit(BaseException):
    """What a program raised to end itself."""


class BadReply(BaseException):
    """What came back is no value: the program, or who speaks in its place, breaks the rules."""


class NotForPrograms(BaseException):
    """The tests hand over what cannot leave them: a fault of theirs."""


class Ledger:
    """What a program raised and no handler of the tests has taken, in one test."""

    def __init__(self) -> None:
        self.open: list[BaseException] = []
        self.fault: str | None = None

    def clear(self) -> None:
        self.open, self.fault = [], None

    def deliver(self, error: BaseException) -> BaseException:
        """Remember it; to be raised."""
        self.open.append(error)
        return error

    def caught(self) -> None:
        """A handler of the tests has the exception that is handled now."""
        at_hand = sys.exc_info()[1]
        self.open = [error for error in self.open if error is not at_hand or isinstance(error, BadReply)]


LEDGER = Ledger()


class Held:
    """Something that stays with the candidate: handed back as what it is, asked for its attributes, and no more."""

    number_: int

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "number_":
            raise AttributeError(name)
        reply = asked({"get": name, "of": self.number_})
        if "ended" in reply:
            # It has none: that is no exception of the program, and `hasattr` may ask.
            raise AttributeError(name)
        return value_of(reply)


class Function(Held):
    """One that can be called as well."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return request(self.number_, arguments, named)


class Stream(Held):
    """An iterator of the candidate, which is asked for one value at a time."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        reply = asked({"next": self.number_})
        if "ended" in reply:
            raise StopIteration
        return value_of(reply)


class HeldList(Held, list[Any]):
    """A container of a type of the program's own: by value here, and itself when it is handed back."""


class HeldTuple(Held, tuple[Any]):
    """Likewise."""


class HeldDict(Held, dict[Any, Any]):
    """Likewise."""


class HeldSet(Held, set[Any]):
    """Likewise."""


class HeldFrozenset(Held, frozenset[Any]):
    """Likewise."""


_KINDS: dict[str, type[Held]] = {"h": Held, "k": Function, "g": Stream}
_COPIES: dict[type, type[Any]] = {
    list: HeldList, tuple: HeldTuple, dict: HeldDict, set: HeldSet, frozenset: HeldFrozenset,
}  # fmt: skip
_HELD: dict[tuple[str, int], Held] = {}
"""One for each thing, so that the same thing is the same here."""


@cache
def requests() -> BinaryIO:
    """What comes in; opened once, as it is read ahead of."""
    return os.fdopen(3, "rb")


def named_function(name: str) -> Callable[..., Any]:
    """The candidate's function of that name."""

    def ask(*arguments: Any, **named: Any) -> Any:
        return request(name, arguments, named)

    def in_place(*arguments: Any, **named: Any) -> Any:
        return request(name, arguments, named, in_place=True)

    ask.in_place = in_place  # pyright: ignore[reportFunctionMemberAccess]  # as functions carry attributes
    return ask


def for_effect(function: Any) -> Any:
    """The function for a call whose result nobody looks at: what it does to its arguments is what counts."""
    return getattr(function, "in_place", function)


def request(called: str | int, arguments: tuple[Any, ...], named: dict[str, Any], *, in_place: bool = False) -> Any:
    """Call a function of the candidate. Raises what it raised."""
    try:
        told = {"arguments": transfer.encode(list(arguments), handed), "named": transfer.encode(named, handed)}
    except transfer.Untransferable as error:
        raise _fault(f"{error}") from None
    reply = asked({"call": called, **told, "in_place": in_place})
    if in_place and "raised" not in reply:
        for own, other in zip(arguments, decoded(reply.get("arguments")), strict=False):
            _replace(own, other)
    return value_of(reply)


def asked(message: dict[str, Any]) -> dict[str, Any]:
    """The candidate's reply, of the right form. Raises BadReply."""
    send(CALL, json.dumps(message).encode())
    try:
        reply = transfer.parse(requests().readline())
    except transfer.Untransferable as error:
        raise LEDGER.deliver(BadReply(f"{error}")) from None
    if not transfer.is_a(reply, dict) or not {"value", "raised", "ended"} & set(reply):
        raise LEDGER.deliver(BadReply("no such reply"))
    return reply


def value_of(reply: dict[str, Any]) -> Any:
    """The value of a reply. Raises what the program raised, kept in the ledger."""
    if "raised" in reply:
        raise LEDGER.deliver(_exception(reply["raised"], decoded(reply.get("about"))))
    return decoded(reply.get("value"))


def decoded(form: Any) -> Any:
    """The value of a form. Raises BadReply."""
    try:
        return transfer.decode(form, hold)
    except (transfer.Untransferable, RecursionError, MemoryError) as error:
        raise LEDGER.deliver(BadReply(f"{error}"[:200])) from None


def _exception(names: Any, arguments: Any) -> BaseException:
    """The first of its classes that is built in; of others, and of what ends a program, one of ours."""
    known = (
        [getattr(builtins, name, None) for name in names if transfer.is_a(name, str)]
        if transfer.is_a(names, list)
        else []
    )
    kinds = [kind for kind in known if isinstance(kind, type) and issubclass(kind, BaseException)]
    kind = next(iter(kinds), ProgramError)
    if not issubclass(kind, Exception):
        kind = ProgramExit
    given: list[Any] = arguments if transfer.is_a(arguments, list) else []
    try:
        return kind(*given)
    except Exception:
        return ProgramError(arguments)


def hold(letter: str, body: Any) -> Any:
    """What becomes of a form of the candidate's. Raises LookupError, TypeError, ValueError."""
    if letter == "n":
        return {kind.__name__: kind for kind in transfer.DATA_TYPES}[body]
    number, form = body if letter == "o" else (body, None)
    if not transfer.is_a(number, int):
        raise TypeError("no such number")
    if letter == "o":
        value = transfer.decode(form, hold)
        made = _COPIES[type(value)](value)
    else:
        made = _HELD.setdefault((letter, number), _KINDS[letter]())
    made.number_ = number
    return made


def handed(value: Any) -> Any:
    """The form of what is handed to the candidate and is no value. Raises NotForPrograms."""
    if isinstance(value, Held):
        return {"h": value.number_}
    name = getattr(value, "__name__", "")
    if transfer.is_a(name, str) and callable(value) and getattr(builtins, name, None) is value:
        return {"n": name}
    if transfer.has(value, "__next__"):
        return {"a": [transfer.encode(item, handed) for item in cast("Iterator[Any]", value)]}
    if hasattr(value, "in_place"):
        raise _fault("a function of the program cannot be handed back to it by its name")
    raise _fault(f"a {type(value).__name__} cannot be handed to the program")


def _fault(reason: str) -> NotForPrograms:
    LEDGER.fault = reason
    return NotForPrograms(reason)


def _replace(own: Any, other: Any) -> None:
    """What the program did to an argument, done to the tests' own."""
    if type(own) is not type(other) or not transfer.is_a(own, *_MUTABLE):
        return
    if transfer.is_a(own, list, bytearray):
        own[:] = other
    else:
        own.clear()
        own.update(other)


def send(mark: bytes, text: bytes = b"") -> None:
    """One line."""
    line = mark + text + b"\n"
    while line:
        line = line[os.write(4, line) :]
