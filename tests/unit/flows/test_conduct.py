"""How a run is ended from outside."""

import contextlib
import os
import signal

import pytest

from flows.conduct import terminations
from papo.errors import Interrupted


def swallowing() -> None:
    """A check of a frame, or a reward: it catches what is raised in it and calls the row wrong."""
    with contextlib.suppress(Exception):
        os.kill(os.getpid(), signal.SIGTERM)
    pytest.fail("the signal was swallowed")


def test_a_signal_is_no_fault_of_what_is_at_hand() -> None:
    with pytest.raises(Interrupted, match=r"^stopped by signal SIGTERM \(pid \d+\)$"), terminations():
        swallowing()


def test_what_was_there_before_is_there_again() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted), terminations():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
