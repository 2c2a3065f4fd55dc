"""The repetition penalty: how much of a completion repeats what it has said (Yeo et al., arXiv:2502.03373 app. C.2)."""

import re
from typing import Literal

from papo.values import value

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+")


@value
class NgramRepetition:
    """max_penalty · (1 − distinct n-grams / n-grams): 0 without repetition, near max_penalty if all is one phrase.

    Words are what stands between blanks, in lower case; scripts without blanks count by the letter.
    """

    kind: Literal["ngram_repetition"] = "ngram_repetition"
    ngram: int = 3
    """Words that make one n-gram."""
    max_penalty: float = -1.0
    """The reward of nothing but repetition; 0 or less."""

    def __post_init__(self) -> None:
        if self.ngram < 1:
            raise ValueError(f"ngram is {self.ngram}: use 1 or more.")
        if not -1e6 < self.max_penalty <= 0:
            raise ValueError(f"max_penalty is {self.max_penalty}: use 0 or a negative number.")

    @property
    def version(self) -> str:
        """Declared version of the rule with its settings."""
        return f"ngram_repetition/1 {self.ngram} {self.max_penalty}"

    def __call__(self, completion: str) -> float:
        """The penalty of one completion, within [max_penalty, 0]; 0 for one of fewer words than an n-gram has."""
        words = _WORD.findall(completion.lower())
        count = len(words) - self.ngram + 1
        if count < 1:
            return 0.0
        distinct = len({tuple(words[start : start + self.ngram]) for start in range(count)})
        return self.max_penalty * (1 - distinct / count) if distinct < count else 0.0
