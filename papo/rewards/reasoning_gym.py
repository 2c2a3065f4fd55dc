"""The outcome reward for problems of reasoning-gym: what the library's own scorer gives full marks."""

import json
from dataclasses import asdict
from math import isfinite
from typing import Literal

from papo.gym.problems import INSTALL, installed
from papo.gym.references import read_reference
from papo.rewards.answers import committed
from papo.rewards.structured import LONGEST_COMPLETION, Truncated, cut_off, decided, find_answer, missing, unscorable
from papo.rewards.verdict import Verdict
from papo.values import value
from papo.verifiers.pool import Reply, shared_pool

LONGEST_ANSWER = 20_000
"""Characters; a longer answer is wrong."""
_PROGRAM, _MEMORY = "papo.gym.worker", 2**31


@value
class ReasoningGym:
    r"""1 if the library scores the answer 1, else 0: its partial scores pay for a mention, so they are not kept.

    The reference answer is the problem as the source `reasoning_gym` writes it. Scorers run in processes that can be
    killed and evaluate nothing that an answer says (`papo.gym.guards`); one that uses up its CPU seconds twice is
    undefined (`timeout`).
    """

    kind: Literal["reasoning_gym"] = "reasoning_gym"
    extract: tuple[Literal["answer_tag", "boxed", "text"], ...] = ("answer_tag", "boxed")
    r"""Where the answer stands, in order of preference: the last `<answer>…</answer>`, the last `\boxed{…}`, all that
    follows the reasoning."""
    truncated: Truncated = "zero"
    """Completions cut off at the token limit earn 0, or are scored like any other."""
    cpu_seconds: float = 5.0
    """CPU time for one answer, tried twice. A busy host takes none of it away."""

    def __post_init__(self) -> None:
        if not self.extract:
            raise ValueError("extract is empty: name at least one of answer_tag, boxed, text.")
        if not (isfinite(self.cpu_seconds) and self.cpu_seconds > 0):
            raise ValueError(f"cpu_seconds is {self.cpu_seconds}: use a positive number.")

    @property
    def version(self) -> str:
        """The settings and the library's version, whose scorers these are."""
        return f"reasoning_gym/2 {json.dumps(asdict(self), sort_keys=True)} reasoning-gym={installed()}"

    def __call__(self, completion: str, *, reference_answer: str, finish_reason: str) -> Verdict:
        """Judge one completion, from any thread. Raises on no text whatever."""
        found = find_answer(committed(completion[-LONGEST_COMPLETION:]), self.extract, closing=str.strip)
        if finish_reason == "length" and self.truncated == "zero":
            return cut_off(found)
        if found is None:
            return missing(self.extract)
        reply = self._ask(reference_answer, found)
        if reply.status == "unscorable":
            return unscorable(f"the reference cannot be scored against: {reply.reason}")
        if reply.same is None:
            status = "timeout" if reply.status == "timeout" else "error"
            return Verdict(accuracy=None, correct=None, status=status, extracted=found, reason=reply.reason)
        return decided(reply.same, extracted=found, reason=reply.reason)

    def check_reference(self, reference_answer: str) -> str | None:
        """Why nothing can be verified against this reference, whose own answer must be scored 1; None if it can."""
        try:
            answer = read_reference(reference_answer).answer
        except ValueError as error:
            return str(error)
        reply = self._ask(reference_answer, answer or "nothing")
        if reply.status != "ok":
            return reply.reason
        return None if answer is None or reply.same else f"its own answer does not verify ({reply.reason})"

    def self_test(self) -> str | None:
        """Why no answer can be scored here; None if one can. A run asks before it starts."""
        return None if installed() else f"the package reasoning-gym is not installed: {INSTALL}"

    def _ask(self, reference: str, answer: str) -> Reply:
        if len(answer) > LONGEST_ANSWER:
            return Reply(same=False, canonical=None, reason=f"longer than {LONGEST_ANSWER} characters", status="ok")
        return shared_pool(self.cpu_seconds, program=_PROGRAM, memory_bytes=_MEMORY).ask(reference, answer)
