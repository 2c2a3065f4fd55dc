"""How commands speak: to the two streams of a terminal, expected errors as plain words with their exit code."""

from collections.abc import Generator
from contextlib import contextmanager

import typer
from rich.console import Console

from papo.errors import PapoError

out, err = Console(highlight=False), Console(stderr=True, highlight=False)


@contextmanager
def failures() -> Generator[None]:
    """Print an expected error as plain words and exit by its kind; let a bug show its traceback."""
    try:
        yield
    except PapoError as error:
        err.print(f"{type(error).__name__}: {error}", markup=False, soft_wrap=True)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        err.print("Stopped by Ctrl-C. Everything published so far is kept; the same command goes on from there.")
        raise typer.Exit(3) from None
