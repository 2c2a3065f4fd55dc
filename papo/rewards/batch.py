"""Judging many completions: in parallel, in order, and with nothing left behind. A failed check is data.

What takes long is judged after the others that are in work, so that hostile answers hold nobody up.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from papo.rewards.verdict import Verdict
from papo.verifiers.pool import PutOff, in_haste, processors, rest_all

LONGEST_REASON = 300
_AHEAD = 2**25
"""Characters in work: a whole batch, so that all is done before what takes long is waited for; of long files a part."""
_OVERHEAD = 1000
"""Of a row, likewise."""


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
    waiting: deque[_Task] = deque()
    held = 0
    # More than there are processors: some wait for workers while others decide by form.
    count = threads or 2 * processors()
    executor = ThreadPoolExecutor(count, thread_name_prefix="verify")
    try:
        for row in rows:
            waiting.append(_Task(row, executor.submit(_in_haste, reward, row)))
            held += waiting[-1].size()
            while held > _AHEAD:
                held -= waiting[0].size()
                yield _first(waiting, reward, executor)
        while waiting:
            yield _first(waiting, reward, executor)
    finally:
        executor.shutdown(cancel_futures=True)
        rest_all()


@dataclass(slots=True)
class _Task:
    row: Answered
    found: Future[Verdict | None]
    """None: put off."""
    again: Future[Verdict] | None = None

    def size(self) -> int:
        return len(self.row.completion) + len(self.row.reference_answer) + _OVERHEAD


def _first(waiting: "deque[_Task]", reward: Judge, executor: ThreadPoolExecutor) -> Verdict:
    verdict = waiting[0].found.result()
    if verdict is None:
        # They queue behind all that is in work.
        for task in waiting:
            if task.again is None and task.found.done() and task.found.result() is None:
                task.again = executor.submit(_judged, reward, task.row)
        again = waiting[0].again
        verdict = again.result() if again is not None else _judged(reward, waiting[0].row)
    waiting.popleft()
    return verdict


def _in_haste(reward: Judge, row: Answered) -> Verdict | None:
    try:
        with in_haste():
            return _judged(reward, row)
    except PutOff:
        return None


def _judged(reward: Judge, row: Answered) -> Verdict:
    try:
        judge = row.reward or reward
        return judge(row.completion, reference_answer=row.reference_answer, finish_reason=row.finish_reason)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
        return Verdict(accuracy=None, correct=None, status="error", reason=reason)
