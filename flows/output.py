"""How commands speak: lines on the two streams of a terminal, and expected errors as plain words with their exit code.

Every line passes `printable`, for it may quote what nobody vouches for, and `masked`, for that may be a password.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

import typer
from rich.console import Console

from flows.proposals import PLAIN, Proposals, rendered
from flows.systemerrors import told_of
from papo.errors import PapoError
from papo.masking import masked
from papo.printable import printable


def console_on(stream: TextIO | None = None, *, stderr: bool = False) -> Console:
    """A console that prints text as it is: no markup, no emoji codes, no colours of its own."""
    return Console(file=stream, stderr=stderr, highlight=False, markup=False, emoji=False)


def say(line: str) -> None:
    """Print a line on standard output."""
    console_on().print(printable(masked(line)), soft_wrap=True)


def warn(line: str) -> None:
    """Print a line on standard error."""
    console_on(stderr=True).print(printable(masked(line)), soft_wrap=True)


def say_json(text: str) -> None:
    """Print JSON, which escapes what must not reach a terminal by itself."""
    sys.stdout.write(text + "\n")


@contextmanager
def failures(proposals: Proposals = PLAIN) -> Generator[None]:
    """Print an expected error as plain words and exit by its kind; let a bug show its traceback.

    `proposals`: how the caller would type the commands that an error proposes.
    """
    try:
        yield
    except PapoError as error:
        warn("\n".join([f"{type(error).__name__}: {error}", *rendered(error, proposals)]))
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        warn("Stopped by Ctrl-C. Everything published so far is kept; the same command goes on from there.")
        raise typer.Exit(3) from None
    except (OSError, RuntimeError, KeyError) as error:
        told = told_of(error)
        if told is None:
            raise
        warn(f"{type(told).__name__}: {told}")
        raise typer.Exit(told.exit_code) from None
