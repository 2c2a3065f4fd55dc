"""`papo verify`: a file of completions judged by the rules of training, or its references held against themselves."""

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from flows.judges import file_opinions
from flows.reporters import reporter_for
from papo.rewards import MathAnswer
from schemas.loading import load_config
from schemas.rewardmodels import verifier_in
from tasks.answerfiles import verify_answers
from tasks.references import unverifiable


def verify(
    source: Path, output: Path, *, config: str | None, overrides: Sequence[str], second_opinion: bool = False
) -> Iterator[str]:
    """Judge a file of completions; lines that say what came of it. Raises DataError with every fault of the file.

    `second_opinion`: the config's LLM is asked about what the rules reject.
    """
    loaded = None if config is None else load_config(Path(config), overrides)
    reward = MathAnswer() if loaded is None else verifier_in(loaded, named=str(config))
    consider = file_opinions(loaded, say=reporter_for(sys.stderr).message) if second_opinion else None
    began = time.monotonic()
    bars = reporter_for(sys.stderr)
    try:
        figures = verify_answers(source, output, reward, progress=bars.progress, consider=consider)
    finally:
        bars.end()
    seconds = time.monotonic() - began
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(figures.statuses.items()))
    yield f"{figures.rows} rows in {seconds:.1f} s ({figures.rows / max(seconds, 1e-9):.0f} a second): {statuses}."
    decided = figures.rows - figures.undecided
    share = f", {figures.correct / decided:.1%} of the {decided} that were decided" if decided else ""
    by_llm = f" ({figures.corrected} by the LLM alone)" if second_opinion else ""
    yield f"{figures.correct} correct{by_llm}{share}. Verdicts: {output}"


def check_references(source: Path, column: str, *, config: str | None, overrides: Sequence[str]) -> Iterator[str]:
    """Lines that name every reference of a data file which does not verify against itself, with the reason."""
    reward = MathAnswer() if config is None else verifier_in(load_config(Path(config), overrides), named=config)
    count = failed = 0
    for row, reason in unverifiable(source, column, reward):
        count += 1
        if reason is not None:
            failed += 1
            yield f"{row.place}: {reason}: {str(row.values.get(column))[:200]}"
    yield f"{count - failed} of {count} references verify against themselves."
