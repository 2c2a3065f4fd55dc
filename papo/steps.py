"""Cutting a completion into reasoning steps, and finding the tokens of each step.

A step is a range of characters first and of tokens second: scorers read text, the loss reads tokens, and the number
of scores is the number of steps on both sides.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

Span = tuple[int, int]
"""Start and end (exclusive)."""

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"
ANSWER_OPEN, ANSWER_CLOSE = "<answer>", "</answer>"


def line_steps(completion: str) -> tuple[Span, ...]:
    """Character ranges of the lines of the working that are not blank, without the white space around them.

    The working runs from the first `<think>` (or the start, if there is none) to the next `</think>` or `<answer>`,
    or to the end where the completion was cut off. Blank lines make no steps, so leading, trailing and doubled
    newlines change nothing.
    """
    start, end = working(completion)
    steps: list[Span] = []
    position = start
    for line in completion[start:end].split("\n"):
        text = line.strip()
        if text:
            first = position + line.index(text)
            steps.append((first, first + len(text)))
        position += len(line) + 1
    return tuple(steps)


def working(completion: str) -> Span:
    """Character range of the reasoning: what stands inside the think tags, finished or not."""
    opened = completion.find(THINK_OPEN)
    start = 0 if opened < 0 else opened + len(THINK_OPEN)
    ends = [found for tag in (THINK_CLOSE, ANSWER_OPEN) if (found := completion.find(tag, start)) >= 0]
    return start, min(ends, default=len(completion))


def token_spans(steps: Sequence[Span], token_ends: Sequence[int]) -> tuple[Span, ...]:
    """Token ranges of steps that are given as character ranges: one for each step, in order.

    `token_ends[i]` is how many characters of the completion the tokens up to and including i cover, so token i starts
    at token_ends[i − 1]; a token belongs to the step that holds its first character. A step in which no token starts
    gets an empty range where it would stand. Raises ValueError if steps overlap or `token_ends` fall: credit would
    land on the wrong tokens.
    """
    if any(a > b for a, b in pairwise(token_ends)):
        raise ValueError("token_ends must not fall: give the characters covered up to and including each token.")
    bounds = [edge for step in steps for edge in step]
    if any(a > b for a, b in pairwise(bounds)):
        raise ValueError(f"steps must be in order and must not overlap, unlike {tuple(steps)}.")
    starts = [0, *token_ends[:-1]] if token_ends else []
    edges = np.searchsorted(np.asarray(starts, dtype=np.int64), np.asarray(bounds, dtype=np.int64), side="left")
    return tuple((int(first), int(end)) for first, end in edges.reshape(-1, 2))
