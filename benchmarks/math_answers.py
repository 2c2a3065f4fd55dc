"""How fast math answers are judged, and whether hostile ones slow the others: `python -m benchmarks.math_answers`.

10,000 short answers of our own making (two thirds whole numbers, the rest fractions, roots, sets, intervals, equations,
half of them wrong), judged by `judge_all` as a run does; then the same with one hostile answer in a hundred, the same
few or each one different, of which every tenth uses up its CPU seconds. `ordinary_seconds` is when the last of the
others was done.
"""

import json
import random
import resource
import sys
import time
from collections.abc import Iterator

from papo.rewards import Answered, MathAnswer, Verdict, judge_all

COUNT = 10_000
HOSTILE = (
    "9^{9^{9^{9}}}", "(10^{10})!", r"\binom{10^9}{5\cdot10^8}", "10**10**10", "{" * 3000, "1" * 20_000,
    r"\sqrt{" * 120 + "2" + "}" * 120, r"\sum_{k=1}^{4999} \frac{\sin k}{k^k}", r"\prod_{k=1}^{4999} (k+\sqrt{k})",
    "__import__('os').abort()",
)  # fmt: skip


class Timed:
    """A reward that notes what each judgement took, in seconds, by the completion's own mark."""

    def __init__(self, reward: MathAnswer) -> None:
        self._reward = reward
        self.ordinary: list[float] = []
        self.hostile: list[float] = []
        self.ordinary_done = 0.0

    def __call__(self, completion: str, *, reference_answer: str, finish_reason: str) -> Verdict:
        began = time.perf_counter()
        verdict = self._reward(completion, reference_answer=reference_answer, finish_reason=finish_reason)
        ended = time.perf_counter()
        if completion.startswith("hostile"):
            self.hostile.append(ended - began)
        else:
            self.ordinary.append(ended - began)
            self.ordinary_done = max(self.ordinary_done, ended)
        return verdict


def answers(count: int, *, hostile_every: int | None = None, differing: bool = False) -> Iterator[Answered]:
    """Rows, always the same."""
    draw = random.Random(0)
    for place in range(count):
        if hostile_every and place % hostile_every == 0:
            number = place // hostile_every
            text = HOSTILE[number % len(HOSTILE)] + (f" + {number}" if differing else "")
            if differing and number % 10 == 0:
                text = rf"\int_0^{{\infty}} \frac{{\sin(x^3 + {number})}}{{x^5 + x + 1}} dx"
            yield Answered(completion=f"hostile \\boxed{{{text}}}", reference_answer="5")
            continue
        reference, answer = pair(draw)
        wrong = draw.random() < 0.5
        talk = "Let us see. " * draw.randint(0, 40)
        yield Answered(
            completion=f"{talk}So it is \\boxed{{{answer}{'1' if wrong else ''}}}.", reference_answer=reference
        )


def pair(draw: random.Random) -> tuple[str, str]:
    """A reference and another way to write it."""
    a, b = draw.randint(2, 99), draw.randint(2, 99)
    kinds = (
        (rf"\frac{{{a}}}{{{b}}}", f"{2 * a}/{2 * b}"),
        (rf"{a}\sqrt{{{b}}}", rf"\sqrt{{{a * a * b}}}"),
        (rf"\{{{a}, {b + 100}\}}", rf"\{{{b + 100}, {a}\}}"),
        (f"[{a}, {a + b}]", rf"{a} \le x \le {a + b}"),
        (f"y = {a}x + {b}", f"{a}x - y + {b} = 0"),
        (f"(x+{a})^2", f"x^2 + {2 * a}x + {a * a}"),
    )
    return (f"{a * b}", f"{a * b}.0") if draw.random() < 2 / 3 else draw.choice(kinds)


def measured(*, hostile_every: int | None, differing: bool) -> dict[str, float | int]:
    """Figures of one pass over the rows."""
    timed = Timed(MathAnswer())
    rows = list(answers(COUNT, hostile_every=hostile_every, differing=differing))
    began, used = time.perf_counter(), cpu_seconds()
    statuses = [verdict.status for verdict in judge_all(timed, rows)]
    seconds, used = time.perf_counter() - began, cpu_seconds() - used
    ordinary = sorted(timed.ordinary)
    return {
        "rows": len(rows),
        "hostile": len(timed.hostile),
        "seconds": round(seconds, 2),
        "ordinary_seconds": round(timed.ordinary_done - began, 2),
        "answers_per_second": round(len(rows) / seconds),
        "answers_per_cpu_second": round(len(rows) / used),
        "median_ms": round(1000 * ordinary[len(ordinary) // 2], 3),
        "p99_ms": round(1000 * ordinary[int(0.99 * len(ordinary))], 3),
        "p999_ms": round(1000 * ordinary[int(0.999 * len(ordinary))], 3),
        "slowest_hostile_ms": round(1000 * max(timed.hostile, default=0.0), 1),
        "timeouts": statuses.count("timeout"),
    }


def cpu_seconds() -> float:
    """Of this process and the workers that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def main() -> None:
    """Three passes, as JSON lines."""
    for hostile_every, differing in ((None, False), (100, False), (100, True)):
        sys.stdout.write(json.dumps(measured(hostile_every=hostile_every, differing=differing)) + "\n")


if __name__ == "__main__":
    main()
