"""The rule rubric for digit chains: an exact judge of the working, for the tasks of `papo.chains`."""

import re
from dataclasses import dataclass
from typing import Literal

from papo.rewards.answers import last_answer_tag
from papo.rewards.format import FormatReward
from papo.scorers.step_scores import StepScores
from papo.steps import line_steps
from papo.values import value

_EQUATION = re.compile(r"(\d{1,9})([+-])(\d{1,9})=(\d{1,9})", re.ASCII)
_PROMPT = re.compile(r"(\d)((?:[+-]\d)+)=", re.ASCII)


@value
class ChainRubric:
    """0 to 1 for the working of a chain such as 7-3+2-5+4=, whatever its answer is worth.

        no wrong line     0.5·covered + 0.2·agrees + 0.3·share
        a wrong line      0.3·covered·share
        not the format    0

    A line is a real step if it is the problem's next step, taken from the line before and worked out rightly.
    covered = share of the problem's steps that have one; share = share of lines that are one; agrees = 1 if the answer
    follows from the last. A line is wrong if it is an equation a+b=c or a-b=c that does not hold.
    """

    kind: Literal["chain_rubric"] = "chain_rubric"
    task: Literal["value", "parity"] = "value"
    """value: the answer is the total. parity: it is the total's remainder by 2."""

    @property
    def version(self) -> str:
        """Declared version of the rule with its settings."""
        return f"chain_rubric/1 task={self.task}"

    def __call__(self, prompt: str, completion: str, *, reference_answer: str, correct: bool) -> StepScores:
        """1.0 for each line of the working that is a real step, 0.0 for the others; the rubric as the aggregate.

        Neither `reference_answer` nor `correct` is looked at: the working is judged against the prompt.
        A prompt that is no chain gives status `failed`.
        """
        spans = line_steps(completion)
        chain = _PROMPT.fullmatch(prompt.strip())
        if chain is None:
            return StepScores(spans=spans, scores=(None,) * len(spans), aggregate=None, status="failed")
        work = _read(chain, [completion[start:end] for start, end in spans])
        scores = tuple(float(real) for real in work.real)
        if FormatReward()(completion) == 0.0:
            return StepScores(spans=spans, scores=scores, aggregate=0.0, status="no_format")
        answer = (last_answer_tag(completion) or "").strip()
        status = "ok" if spans else "no_steps"
        return StepScores(spans=spans, scores=scores, aggregate=self._aggregate(work, answer), status=status)

    def _aggregate(self, work: "_Work", answer: str) -> float:
        share = sum(work.real) / len(work.real) if work.real else 0.0
        if work.any_wrong:
            return 0.3 * work.covered * share
        total = work.last if self.task == "value" or work.last is None else work.last % 2
        agrees = total is not None and answer == str(total)
        return 0.5 * work.covered + 0.2 * agrees + 0.3 * share


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    real: list[bool]
    any_wrong: bool
    covered: float
    last: int | None


def _read(chain: re.Match[str], lines: list[str]) -> _Work:
    """Follow the problem's steps through the lines."""
    expected = re.findall(r"([+-])(\d)", chain.group(2))
    running, done, any_wrong, last = int(chain.group(1)), 0, False, None
    real: list[bool] = []
    for line in lines:
        equation = _EQUATION.fullmatch(line)
        is_real = False
        if equation is not None:
            left, result = int(equation.group(1)), int(equation.group(4))
            change = int(equation.group(3)) if equation.group(2) == "+" else -int(equation.group(3))
            holds = left + change == result
            any_wrong |= not holds
            is_next = done < len(expected) and expected[done] == (equation.group(2), equation.group(3))
            is_real = holds and is_next and left == running
            if is_next and left == running:
                running, done = result, done + 1
                last = result
        real.append(is_real)
    return _Work(real=real, any_wrong=any_wrong, covered=sum(real) / len(expected), last=last)
