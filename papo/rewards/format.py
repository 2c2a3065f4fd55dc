"""The format reward: the whole completion is one think block and one answer block, and nothing else."""

import re
from typing import Literal

from papo.steps import ANSWER_CLOSE, ANSWER_OPEN, THINK_CLOSE, THINK_OPEN
from papo.values import value

TAGS = (THINK_OPEN, THINK_CLOSE, ANSWER_OPEN, ANSWER_CLOSE)
SAMPLE = f"{THINK_OPEN}1+1=2{THINK_CLOSE}{ANSWER_OPEN}2{ANSWER_CLOSE}"
"""What the format looks like; a run checks at its start that it earns 1."""
_WHOLE = re.compile(rf"\s*{THINK_OPEN}.*{THINK_CLOSE}\s*{ANSWER_OPEN}.*{ANSWER_CLOSE}\s*", re.DOTALL)


@value
class FormatReward:
    """1.0 for `<think>…</think><answer>…</answer>` as the whole text with each tag exactly once, else 0.0.

    Whole-text match alone would pay for tags inside tags, and counts alone for tags in any order.
    """

    kind: Literal["think_answer"] = "think_answer"
    end_markers: tuple[str, ...] = ("<|im_end|>", "<|endoftext|>", "</s>", "<eos>")
    """End-of-turn marks that may stand at the very end, where the decoder keeps special tokens."""

    @property
    def version(self) -> str:
        """Declared version of the rule with its settings."""
        return f"think_answer/1 {list(self.end_markers)}"

    def __call__(self, completion: str) -> float:
        """The reward of one completion. Any white space, Windows line ends included, may stand around the blocks."""
        text = completion.rstrip()
        for marker in self.end_markers:
            text = text.removesuffix(marker)
        return float(all(text.count(tag) == 1 for tag in TAGS) and _WHOLE.fullmatch(text) is not None)
