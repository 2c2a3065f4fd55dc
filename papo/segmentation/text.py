"""Cuts that are seen in the text: at line ends, at cue words, where a pattern matches."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from papo.rollouts import Values
from papo.steps import Span
from papo.values import value


@value
class Newlines:
    """A segment starts on each line that is not blank, after the first."""

    kind: Literal["newline"] = "newline"

    def segments(self, completion: str, token_ends: Sequence[int], *, entropies: Values | None) -> tuple[Span, ...]:
        """Half-open token ranges that cover all tokens; a token belongs where its first character is."""
        starts = (match.start(1) for match in re.finditer(r"(?<=\S)[^\S\n]*\n\s*(\S)", completion))
        return token_segments(starts, token_ends)


@value
class CueWords:
    """A segment starts at each cue word: words by which reasoning turns."""

    kind: Literal["cue_word"] = "cue_word"
    words: tuple[str, ...] = ("so", "therefore", "thus", "hence", "then", "next", "now", "wait", "but", "finally")
    """Whole words, whatever their case."""

    def __post_init__(self) -> None:
        if not self.words or not all(self.words):
            raise ValueError(f"words is {self.words}: give one cue word or more, none of them empty.")

    def segments(self, completion: str, token_ends: Sequence[int], *, entropies: Values | None) -> tuple[Span, ...]:
        """Half-open token ranges that cover all tokens; a token belongs where its first character is."""
        either = "|".join(re.escape(word) for word in self.words)
        found = re.finditer(rf"(?<!\w)(?:{either})(?!\w)", completion, flags=re.IGNORECASE)
        return token_segments((match.start() for match in found), token_ends)


@value
class Pattern:
    """A segment starts where a regular expression matches."""

    kind: Literal["regex"] = "regex"
    pattern: str = r"\n\n"
    """A Python regular expression."""
    cut: Literal["before", "after"] = "after"
    """Whether the matched text begins the next segment or ends the one before."""

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ValueError(f"pattern {self.pattern!r} is no regular expression: {error}.") from None

    def segments(self, completion: str, token_ends: Sequence[int], *, entropies: Values | None) -> tuple[Span, ...]:
        """Half-open token ranges that cover all tokens; a token belongs where its first character is."""
        found = re.finditer(self.pattern, completion)
        starts = (match.start() if self.cut == "before" else match.end() for match in found)
        return token_segments(starts, token_ends)


def token_segments(starts: Iterable[int], token_ends: Sequence[int]) -> tuple[Span, ...]:
    """Segments that start at the first token which begins at or after each character in `starts`.

    `token_ends[i]` is how many characters the tokens up to and including i cover. A start inside a token cuts after
    it: a token is never divided.
    """
    count = len(token_ends)
    begins = np.array([0, *token_ends[:-1]] if count else [], dtype=np.int64)
    cuts = np.searchsorted(begins, np.array(sorted(starts), dtype=np.int64), side="left").tolist()
    edges = sorted({0, *(cut for cut in cuts if cut < count), count})
    return tuple(pairwise(edges))
