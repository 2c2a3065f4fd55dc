"""How a run shows itself: live in a terminal, as plain lines in a log."""

import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from flows.output import console_on
from papo.correctness import accuracy_in
from papo.masking import masked
from papo.printable import printable
from schemas.records import GENESIS
from tasks.run import Reporter

Numbers = dict[str, float | int | bool | None]
_LOG_SECONDS = 30.0


class Live(Reporter, Protocol):
    """A reporter that is told when the run begins and ends."""

    def begin(self, done: int, total: int) -> None: ...
    def end(self) -> None: ...


def reporter_for(stream: TextIO | None = None) -> Live:
    """Bars and colours where somebody watches, plain lines elsewhere; on standard output unless said otherwise."""
    stream = sys.stdout if stream is None else stream
    console = console_on(stream)
    return (
        TerminalReporter(console)
        if console.is_terminal
        else LogReporter(lambda line: print(printable(masked(line)), file=stream, flush=True))
    )


def iteration_line(iteration: int, values: Numbers) -> str:
    """The one line of an iteration: accuracy, reward, process score, length, zero-advantage share, seconds by stage."""
    seconds = {name.removeprefix("seconds/"): spent for name, spent in values.items() if name.startswith("seconds/")}
    slow = sorted(((float(spent or 0.0), name) for name, spent in seconds.items()), reverse=True)[:3]
    name, accuracy = accuracy_in(values)
    parts = [] if iteration == GENESIS else [
        f"{name} {_number(accuracy)}{_by_llm(values)}",
        f"reward {_number(values.get('outcome_mean'))}",
        f"process {_number(values.get('process_mean'))}",
        f"length {_number(values.get('length_mean'), 1)}",
        f"zero-advantage {_number(values.get('zero_advantage_ratio'))}",
    ]  # fmt: skip
    name, accuracy = accuracy_in(values, prefix="evaluation/")
    if accuracy is not None:
        said = "" if name == "accuracy" else "predicted, "
        by_llm = _by_llm(values, prefix="evaluation/")
        parts.append(f"HELD-OUT {_number(accuracy, 3)}{by_llm} ({said}n={values.get('evaluation/n')})")
    parts.append(" ".join(f"{name} {spent:.1f}s" for spent, name in slow))
    return f"{'before' if iteration == GENESIS else f'{iteration:5d} '} " + " · ".join(parts)


def _by_llm(values: Numbers, *, prefix: str = "") -> str:
    """How much of an accuracy is an LLM's word, where any is."""
    share = values.get(f"{prefix}llm_corrected")
    return f" ({_number(share, 3)} of it by an LLM)" if share else ""


class LogReporter:
    """Plain lines; long stages say every half minute how far they are."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._stage = ""
        self._said = time.monotonic()

    def begin(self, done: int, total: int) -> None:
        self._write(f"At iteration {done} of {total}.")

    def end(self) -> None: ...

    def message(self, text: str) -> None:
        self._write(text)

    def stage(self, iteration: int, stage: str) -> None:
        self._stage = f"{iteration:05d}/{stage}" if iteration >= 0 else f"genesis/{stage}"

    def progress(self, done: int, total: int) -> None:
        if time.monotonic() - self._said > _LOG_SECONDS:
            self._said = time.monotonic()
            self._write(f"{self._stage or 'sft'}: {done} of {total}")

    def iteration(self, iteration: int, values: Numbers) -> None:
        self._write(iteration_line(iteration, values))


class TerminalReporter:
    """A bar for the run, a bar for the stage at work, and the iterations' lines above them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            SpinnerColumn(), TextColumn("{task.description:<22}", markup=False), BarColumn(), MofNCompleteColumn(),
            TimeElapsedColumn(), console=console, transient=True,
        )  # fmt: skip
        self._run: TaskID | None = None
        self._stage: TaskID | None = None

    def begin(self, done: int, total: int) -> None:
        self._bars.start()
        self._run = self._bars.add_task("iterations", total=total, completed=done)

    def end(self) -> None:
        self._bars.stop()

    def message(self, text: str) -> None:
        self._console.print(printable(masked(text)), style="dim", soft_wrap=True)

    def stage(self, iteration: int, stage: str) -> None:
        self._show(f"{iteration:05d}/{stage}" if iteration >= 0 else f"genesis/{stage}", 0, None)

    def progress(self, done: int, total: int) -> None:
        self._bars.start()
        self._show(None, done, total)

    def iteration(self, iteration: int, values: Numbers) -> None:
        self._console.print(iteration_line(iteration, values))
        if self._run is not None:
            self._bars.update(self._run, completed=iteration + 1)

    def _show(self, description: str | None, done: int, total: int | None) -> None:
        if self._stage is None:
            self._stage = self._bars.add_task(description or "training", total=total)
        self._bars.update(self._stage, completed=done, total=total)
        if description is not None:
            self._bars.update(self._stage, description=description)


def _number(value: float | int | bool | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
