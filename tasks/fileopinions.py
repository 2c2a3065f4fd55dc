"""Second opinions on a file's verdicts, some rows at a time. There is no run to wait in: a judge that fails is data."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from papo.judges import Judge
from papo.rewards import Verdict
from schemas.judges import SecondOpinionConfig
from tasks.opinions import Considered, considered

PART = 512
"""Rows whose questions are asked together."""
ConsiderRows = Callable[[Iterator[Verdict], Iterator[tuple[str, str] | None]], Iterable[Considered]]
"""From the verdicts on rows, and question and reference of each, to what they are after a second opinion."""


def by_rules(verdicts: Iterable[Verdict]) -> Iterator[Considered]:
    """No second opinion: each verdict as it comes."""
    return (Considered(verdict=verdict) for verdict in verdicts)


def in_parts(settings: SecondOpinionConfig, judge: Judge) -> ConsiderRows:
    """A second opinion in order. Where the judge fails, rows have status judge_failed, or stay wrong by `rule`."""
    if settings.on_failure == "pause":
        settings = settings.model_copy(update={"on_failure": "undecided"})

    def consider(verdicts: Iterator[Verdict], about: Iterator[tuple[str, str] | None]) -> Iterator[Considered]:
        while part := list(islice(verdicts, PART)):
            yield from considered(part, list(islice(about, len(part))), settings, judge.ask_all)

    return consider
