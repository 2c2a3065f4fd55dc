"""math-verify as a second reader of LaTeX. Imported in a worker, when first needed."""

from typing import Any

from math_verify import parse, verify

_PARSE: Any = parse


def same(gold: str, answer: str) -> bool:
    """Its verdict, the reference first. Its own time limits are off: they need the main thread and a wall clock."""
    ours, theirs = (_PARSE(f"\\boxed{{{text}}}", parsing_timeout=0) for text in (gold, answer))
    return bool(ours) and bool(theirs) and verify(ours, theirs, timeout_seconds=0)
