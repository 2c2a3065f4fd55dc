"""Who called the training flow: what cannot be a flow parameter, and what must survive a failed bookkeeping."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from flows.conduct import Ended
from flows.proposals import Places
from flows.reporters import Live, reporter_for


@dataclass
class Caller:
    """Defaults are a deployment's: the working folder, plain lines on standard output."""

    reporter: Live = field(default_factory=reporter_for)
    places: Places = field(default_factory=Places)
    started: bool = False
    """Whether the flow's body began: before that, Prefect has to be asked whether it may."""
    ended: Ended | None = None
    """How the flow's body ended, whatever Prefect made of it."""
    error: BaseException | None = None
    """What the body raised."""
    on_end: Callable[[], None] = lambda: None
    """Told when the body is over, however it ended, and only bookkeeping is left."""


_caller: ContextVar[Caller | None] = ContextVar("caller", default=None)


def caller() -> Caller:
    """Whoever called, or the defaults."""
    return _caller.get() or Caller()


@contextmanager
def calling(by: Caller) -> Generator[Caller]:
    """Until the end, flows of this thread are called by `by`."""
    token = _caller.set(by)
    try:
        yield by
    finally:
        _caller.reset(token)
