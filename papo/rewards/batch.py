"""Judging many completions: in parallel, in order, and with nothing left behind. A failed check is data."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from papo.rewards.verdict import Verdict
from papo.verifiers.pool import processors, rest_all

LONGEST_REASON = 300
_AHEAD = 16
"""Rows in work for each thread: enough to keep all busy, few enough to stream."""


@runtime_checkable
class Judge(Protocol):
    """An outcome reward."""

    def __call__(self, completion: str, *, reference_answer: str, finish_reason: str) -> Verdict: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One completion and what it is judged by."""

    completion: str
    reference_answer: str
    finish_reason: str = "stop"
    reward: Judge | None = None
    """None: the batch's."""


def judge_all(reward: Judge, rows: Iterable[Answered], *, threads: int | None = None) -> Iterator[Verdict]:
    """One verdict a row, in the rows' order, however many threads (None: two a processor) work on them.

    A reward that raises gives this row status `error`, accuracy None and the error as reason; the others are judged.
    When all are judged, the worker processes that were started for them are gone.
    """
    waiting: deque[Future[Verdict]] = deque()
    # More than there are processors: some wait for workers while others decide by form.
    count = threads or 2 * processors()
    executor = ThreadPoolExecutor(count, thread_name_prefix="verify")
    try:
        for row in rows:
            waiting.append(executor.submit(_judged, reward, row))
            if len(waiting) >= _AHEAD * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        executor.shutdown(cancel_futures=True)
        rest_all()


def _judged(reward: Judge, row: Answered) -> Verdict:
    try:
        judge = row.reward or reward
        return judge(row.completion, reference_answer=row.reference_answer, finish_reason=row.finish_reason)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
        return Verdict(accuracy=None, correct=None, status="error", reason=reason)
