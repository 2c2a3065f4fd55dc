"""Workers that can be killed: what uses up its limits is undefined, what is right stays right, nothing is left."""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from papo.rewards import MathAnswer, Verdict, batch
from papo.rewards.batch import Answered, judge_all
from papo.verifiers import pool as pool_module
from papo.verifiers.pool import PutOff, WorkerPool, in_haste, rest_all
from papo.verifiers.rules import Rules

RULES = Rules()
RIGHT = (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}")
"""Needs a worker: form does not show that they are equal."""
HEAVY = r"\sum_{k=1}^{4900} \frac{\sin k}{\sqrt{k}}"
"""A tenth of a second of CPU time, so beyond a limit of a hundredth."""
MATH = MathAnswer()


def boxed(answer: str) -> str:
    return rf"\boxed{{{answer}}}"


@pytest.fixture(autouse=True)
def nothing_left() -> Generator[None]:
    """Also before: other tests of this process leave workers to the next one."""
    rest_all()
    yield
    rest_all()


@pytest.fixture
def pool() -> Generator[WorkerPool]:
    made = WorkerPool(2, cpu_seconds=5.0)
    yield made
    made.rest()


def workers() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "papo.verifiers.worker" in child.cmdline()]


def test_a_pair_beyond_its_cpu_seconds_is_undefined() -> None:
    """BUG-138: never wrong."""
    pool = WorkerPool(1, cpu_seconds=0.01)
    reply = pool.ask("\\pi", HEAVY, RULES)
    assert (reply.same, reply.status) == (None, "timeout")
    assert not workers()


def test_the_same_pair_with_more_time_is_decided(pool: WorkerPool) -> None:
    assert pool.ask("\\pi", HEAVY, RULES).same is False


def test_undefined_is_a_verdict_without_reward() -> None:
    verdict = MathAnswer(cpu_seconds=0.01)(boxed(HEAVY), reference_answer="\\pi", finish_reason="stop")
    assert (verdict.accuracy, verdict.correct, verdict.status, verdict.extracted) == (None, None, "timeout", HEAVY)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_dies_or_stops_costs_no_answer(number: signal.Signals) -> None:
    pool = WorkerPool(1, cpu_seconds=5.0, wall_seconds=2.0)
    assert pool.ask(*RIGHT, RULES).same
    (worker,) = workers()
    worker.send_signal(number)
    assert pool.ask(*RIGHT, RULES).same
    pool.rest()
    assert not workers()


def test_memory_is_bounded(pool: WorkerPool) -> None:
    pool.ask(*RIGHT, RULES)
    (worker,) = workers()
    assert worker.rlimit(psutil.RLIMIT_AS)[0] < 2**31


def test_workers_are_given_nothing_of_the_callers(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    pool.ask(*RIGHT, RULES)
    (worker,) = workers()
    assert "SECRET" not in worker.environ()
    assert all(not file.path.startswith("/dev/pts") for file in worker.open_files())


def test_bug_052_verdicts_do_not_depend_on_the_caller() -> None:
    """From a worker thread and an asyncio executor; from a Prefect task in tests/orchestration."""

    def half() -> float | None:
        return MATH(boxed("0.5"), reference_answer="1/2", finish_reason="stop").accuracy

    def root() -> float | None:
        return MATH(boxed(RIGHT[1]), reference_answer=RIGHT[0], finish_reason="stop").accuracy

    async def in_executor() -> list[float | None]:
        loop = asyncio.get_running_loop()
        return list(await asyncio.gather(*(loop.run_in_executor(None, work) for work in (half, root))))

    with ThreadPoolExecutor(4) as executor:
        threads = [executor.submit(work).result() for work in (half, root)]
    assert [half(), root()] == threads == asyncio.run(in_executor()) == [1.0, 1.0]


def test_a_batch_keeps_its_order_and_leaves_nothing() -> None:
    rows = [Answered(completion=boxed(str(number)), reference_answer=str(number % 3)) for number in range(200)]
    rows[100] = Answered(completion=boxed(RIGHT[1]), reference_answer=RIGHT[0])
    found = [verdict.correct for verdict in judge_all(MATH, rows)]
    assert found == [number == number % 3 or number == 100 for number in range(200)]
    assert not workers()


def test_bug_067_a_reward_that_raises_is_an_error_of_its_row() -> None:
    def reward(completion: str, *, reference_answer: str, finish_reason: str):
        if completion == "3":
            raise KeyError("missing")
        return MATH(completion, reference_answer=reference_answer, finish_reason=finish_reason)

    rows = [Answered(completion=str(number), reference_answer="1") for number in range(8)]
    verdicts = list(judge_all(reward, rows))
    assert [verdict.status for verdict in verdicts].count("error") == 1
    assert (verdicts[3].accuracy, verdicts[3].reason) == (None, "KeyError: 'missing'")
    assert verdicts[1].accuracy == 1.0


@pytest.mark.slow
def test_bug_069_fifty_batches_with_a_hanging_row_leave_no_process_and_no_file() -> None:
    short = MathAnswer(cpu_seconds=0.01)
    rows = [Answered(completion=boxed(HEAVY), reference_answer="\\pi"), Answered(completion="2", reference_answer="2")]

    def one_batch() -> tuple[int, int]:
        verdicts = list(judge_all(short, rows))
        assert [verdict.status for verdict in verdicts] == ["timeout", "ok"]
        return len(psutil.Process().children()), len(os.listdir("/proc/self/fd"))

    first = one_batch()
    assert [one_batch() for _ in range(49)] == [first] * 49


def spin(until: float) -> None:
    while time.monotonic() < until:
        pass


@pytest.mark.slow
def test_bug_138_a_busy_host_turns_no_right_answer_into_a_wrong_one() -> None:
    """Sixty right answers, each beyond form, beside four busy loops a core."""
    context = multiprocessing.get_context("spawn")
    until = time.monotonic() + 20
    loops = [context.Process(target=spin, args=(until,)) for _ in range(4 * len(os.sched_getaffinity(0)))]
    for loop in loops:
        loop.start()
    rows = [
        Answered(
            completion=boxed(rf"\frac{{1}}{{\sqrt{{{number}}}}}"),
            reference_answer=rf"\frac{{\sqrt{{{number}}}}}{{{number}}}",
        )
        for number in range(2, 62)
    ]
    try:
        verdicts = list(judge_all(MATH, rows))
    finally:
        for loop in loops:
            loop.kill()
            loop.join()
    assert [verdict.correct for verdict in verdicts] == [True] * 60


def test_hostile_text_does_nothing(tmp_path: Path, pool: WorkerPool) -> None:
    trap = tmp_path / "trap"
    for text in (f"__import__('os').system('touch {trap}')", f"\\input{{{trap}}}", f'exec(\'open("{trap}", "w")\')'):
        assert pool.ask("5", text, RULES).same is False
    assert not trap.exists()


def test_in_haste_a_long_pair_is_put_off_and_then_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "FIRST_LOOK", 0.01)
    pool = WorkerPool(1, cpu_seconds=5.0)
    with in_haste():
        assert pool.ask(*RIGHT, RULES).same
        for _ in range(2):
            with pytest.raises(PutOff):
                pool.ask("\\pi", HEAVY, RULES)
    tried: list[bytes] = []
    attempt = WorkerPool._attempt  # pyright: ignore[reportPrivateUsage]  # counted

    def counted(self: WorkerPool, request: bytes, worker: pool_module.Worker) -> pool_module.Reply | None:
        tried.append(request)
        return attempt(self, request, worker)

    monkeypatch.setattr(WorkerPool, "_attempt", counted)
    first = pool.ask("\\pi", HEAVY, RULES)
    assert (first.same, len(tried)) == (False, 1)
    assert pool.ask("\\pi", HEAVY, RULES) is first
    pool.rest()
    assert pool.ask("\\pi", HEAVY, RULES) == first
    assert len(tried) == 2
    pool.rest()


def test_what_needs_a_slow_import_is_put_off_without_ending_the_worker() -> None:
    pool = WorkerPool(1, cpu_seconds=5.0)
    with in_haste():
        pool.ask(*RIGHT, RULES)
        (worker,) = workers()
        with pytest.raises(PutOff):
            pool.ask("1", r"\int_0^1 2x dx", RULES)
        assert workers() == [worker]
    assert pool.ask("1", r"\int_0^1 2x dx", RULES).same
    assert workers() == [worker]
    pool.rest()


@pytest.mark.parametrize("seconds", [0.02, 5.0])
def test_bug_069_hostile_answers_wait_and_the_others_do_not(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """BUG-138: the verdicts are those that each gets on its own, whatever the order."""
    monkeypatch.setattr(pool_module, "FIRST_LOOK", 0.01)
    reward = MathAnswer(cpu_seconds=seconds)
    done: list[str] = []

    def noting(completion: str, *, reference_answer: str, finish_reason: str) -> Verdict:
        verdict = reward(completion, reference_answer=reference_answer, finish_reason=finish_reason)
        done.append(completion)
        return verdict

    hostile = [Answered(completion=boxed(f"{HEAVY} + {number % 3}"), reference_answer="5") for number in range(6)]
    ordinary = [
        Answered(completion=boxed(rf"\frac{{1}}{{\sqrt{{{n}}}}}"), reference_answer=rf"\frac{{\sqrt{{{n}}}}}{{{n}}}")
        for n in range(2, 22)
    ]
    verdicts = list(judge_all(noting, [*hostile, *ordinary], threads=2))
    assert set(done[: len(ordinary)]) == {row.completion for row in ordinary}
    assert len(done) == len(hostile) + len(ordinary)
    status = "timeout" if seconds < 0.1 else "ok"
    assert [verdict.status for verdict in verdicts] == [status] * 6 + ["ok"] * 20
    assert all(verdict.correct for verdict in verdicts[6:])
    assert not any(verdict.correct for verdict in verdicts[:6])
    assert not workers()
    assert verdicts[0] == reward(hostile[0].completion, reference_answer="5", finish_reason="stop")


def test_a_long_file_is_read_as_it_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_AHEAD", 10_000)
    read: list[int] = []

    def rows() -> Generator[Answered]:
        for number in range(100):
            read.append(number)
            yield Answered(completion=boxed(str(number)), reference_answer="7")

    judged = judge_all(MATH, rows())
    assert next(judged).correct is False
    assert len(read) < 15
    assert [verdict.correct for verdict in judged].count(True) == 1
