"""The digit-chain tasks: arithmetic that a tiny model learns on a CPU in minutes. Data only, no torch.

    prompt       7-3+2-5+4=
    completion   <think>7-3=4\n4+2=6\n6-5=1\n1+4=5</think><answer>5</answer>

A chain has a first digit 0..9 and then `steps` times + or − a digit 1..9, every running total within 0..9, so one
number is one token. From each total exactly nine steps are possible, so the problems are the numbers 0 to
10·9^steps − 1, and one in sixteen of them, by a hash that no seed enters, is held out: training never draws it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

import numpy as np

from papo.seeding import mix64, seed_for
from papo.values import value

VOCABULARY = (
    "<pad>", "<eos>", "<think>", "</think>", "<answer>", "</answer>",
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "+", "-", "=", "\n",
)  # fmt: skip
"""The 20 tokens, by id."""

Style = Literal["guess", "concise", "verbose", "error", "ramble", "sloppy"]
VALUE_MIXTURE: Mapping[Style, float] = {"guess": 0.51, "concise": 0.25, "verbose": 0.16, "error": 0.04, "ramble": 0.04}
"""More than half guesses, so that greedy decoding of the cold-started policy guesses too."""
PARITY_MIXTURE: Mapping[Style, float] = {"guess": 0.15, "concise": 0.10, "verbose": 0.05, "sloppy": 0.70}
"""Mostly unsound working, which by luck is right half of the time: what outcome reward alone cannot see."""
SLOPPY_RATE = 0.25
"""Chance that a step of a sloppy trace is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One chain with its answer."""

    prompt: str
    reference_answer: str
    first: int
    changes: tuple[int, ...]
    """The signed digit of each step."""


@value
class ChainTask:
    """A generator of problems and of cold-start traces, both functions of a seed alone."""

    kind: Literal["chains"] = "chains"
    task: Literal["value", "parity"] = "value"
    """What is asked for: the total, or its remainder by 2."""
    steps: int = 4
    """Additions and subtractions a problem has, 1 to 6."""

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= 6:
            raise ValueError(f"steps is {self.steps}: use 1 to 6, all problems of a length are listed in memory.")

    def problems(self, seed: int, count: int, split: Literal["train", "heldout"] = "train") -> list[Problem]:
        """`count` different problems of a split, in an order that the seed gives.

        Raises ValueError if the split has fewer.
        """
        numbers = np.arange(10 * 9**self.steps, dtype=np.uint64)
        held_out = mix64(numbers) % np.uint64(16) == 0
        numbers = numbers[held_out if split == "heldout" else ~held_out]
        if count > len(numbers):
            raise ValueError(f"count is {count} but the {split} split of {self.steps}-step chains has {len(numbers)}.")
        start = np.array([seed_for(seed, stage=f"chains/{split}")], dtype=np.uint64)
        order = np.argsort(mix64(numbers ^ mix64(start)), kind="stable")[:count]
        return [self._problem(int(number)) for number in numbers[order]]

    def sft_rows(self, seed: int, count: int, mixture: Mapping[Style, float] | None = None) -> list[tuple[str, str]]:
        """`count` pairs of prompt and completion, each in a style drawn from `mixture` (default: the task's own).

        Problems are training ones and repeat where `count` exceeds their number. Weights need not sum to 1.
        """
        weights = dict(mixture or (VALUE_MIXTURE if self.task == "value" else PARITY_MIXTURE))
        distinct = self.problems(seed, min(count, _training_size(self.steps)))
        rows: list[tuple[str, str]] = []
        for row in range(count):
            random = Random(seed_for(seed, stage="chains/sft", sample_index=row))
            problem = distinct[row % len(distinct)]
            rows.append((problem.prompt, self.trace(problem, _draw_style(weights, random), random)))
        return rows

    def trace(self, problem: Problem, style: Style, random: Random) -> str:
        """One completion in a style.

        guess     empty working, any answer         concise   the right working
        error     one wrong step, carried on        sloppy    each step wrong with a chance of SLOPPY_RATE, carried on
        verbose   concise and 1 to 4 filler lines   ramble    error and 1 to 4 filler lines
        """
        if style == "guess":
            return _completion([], _below(10 if self.task == "value" else 2, random))
        if style in ("error", "ramble"):
            totals = _with_one_error(problem, random)
        else:
            totals = _totals(problem, random, error_rate=SLOPPY_RATE if style == "sloppy" else 0.0)
        lines = [
            f"{before}{change:+d}={after}"
            for before, change, after in zip([problem.first, *totals], problem.changes, totals, strict=False)
        ]
        if style in ("verbose", "ramble"):
            lines += [f"={totals[-1]}"] * (1 + _below(4, random))
        return _completion(lines, totals[-1] if self.task == "value" else totals[-1] % 2)

    def _problem(self, number: int) -> Problem:
        number, first = divmod(number, 10)
        total, changes = first, list[int]()
        for _ in range(self.steps):
            number, choice = divmod(number, 9)
            change = choice - total if choice < total else choice - total + 1
            changes.append(change)
            total += change
        answer = total if self.task == "value" else total % 2
        prompt = f"{first}{''.join(f'{change:+d}' for change in changes)}="
        return Problem(prompt=prompt, reference_answer=str(answer), first=first, changes=tuple(changes))


def _training_size(steps: int) -> int:
    numbers = np.arange(10 * 9**steps, dtype=np.uint64)
    return int((mix64(numbers) % np.uint64(16) != 0).sum())


def _completion(lines: list[str], answer: int) -> str:
    return "<think>" + "\n".join(lines) + f"</think><answer>{answer}</answer>"


def _below(bound: int, random: Random) -> int:
    """A whole number below `bound`; only Random.random() is promised to stay the same over versions of Python."""
    return int(random.random() * bound)


def _draw_style(weights: Mapping[Style, float], random: Random) -> Style:
    point = random.random() * sum(weights.values())
    for style, weight in weights.items():
        point -= weight
        if point < 0:
            return style
    return next(reversed(list(weights)))


def _totals(problem: Problem, random: Random, *, error_rate: float) -> list[int]:
    """Running totals with errors that are carried on; a total that would leave 0..9 later on is never chosen."""
    total, totals = problem.first, list[int]()
    for step, change in enumerate(problem.changes):
        wrong = _wrong_totals(total + change, problem.changes[step + 1 :])
        hit = random.random() < error_rate
        total = wrong[_below(len(wrong), random)] if hit and wrong else total + change
        totals.append(total)
    return totals


def _with_one_error(problem: Problem, random: Random) -> list[int]:
    """Running totals with exactly one step worked out wrongly; the last step can always be that one."""
    right = [problem.first + sum(problem.changes[: step + 1]) for step in range(len(problem.changes))]
    wrongs = [_wrong_totals(total, problem.changes[step + 1 :]) for step, total in enumerate(right)]
    choices = [(step, wrong) for step, wrong in enumerate(wrongs) if wrong]
    step, wrong = choices[_below(len(choices), random)]
    shift = wrong[_below(len(wrong), random)] - right[step]
    return right[:step] + [total + shift for total in right[step:]]


def _wrong_totals(right: int, rest: tuple[int, ...]) -> list[int]:
    """Other totals from which the remaining steps stay within 0..9."""
    ahead = [sum(rest[:step]) for step in range(len(rest) + 1)]
    return [total for total in range(10) if total != right and all(0 <= total + change <= 9 for change in ahead)]
