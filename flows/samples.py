"""`papo samples`: what the policy said, why it was pushed up or down."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import polars as pl

from papo.runs import open_run

Order = Literal["best", "worst", "truncated", "first"]


def samples(folder: Path, *, at: int | None, order: Order, count: int) -> Iterator[str]:
    """Rollouts of an iteration (default: the newest) as text, ordered by advantage, or the truncated ones."""
    run = open_run(folder)
    iteration = run.iterations[-1] if at is None and run.iterations else (at or 0)
    rows = chosen(run.rollouts(iteration), order).head(count)
    yield f"Iteration {iteration}, {order}: {rows.height} of {run.frame(iteration, 'generate').height} rollouts"
    for row in rows.iter_rows(named=True):
        yield ""
        yield from described(row)


def chosen(rows: pl.DataFrame, order: Order) -> pl.DataFrame:
    """The rows in the order that was asked for."""
    match order:
        case "best":
            return rows.sort("advantage", descending=True, nulls_last=True, maintain_order=True)
        case "worst":
            return rows.sort("advantage", nulls_last=True, maintain_order=True)
        case "truncated":
            return rows.filter(pl.col("finish_reason") == "length")
        case "first":
            return rows


def described(row: dict[str, Any]) -> Iterator[str]:
    """One rollout: key, question, completion, verdict and credit."""
    yield f"── group {row['group_id']}, sample {row['sample_index']} · prompt {row['prompt_id']}"
    yield f"question    {_indented(row['question'])}"
    yield f"completion  {_indented(row['completion'])}"
    verdict = verdict_of(row)
    extracted = "no answer" if row["extracted"] is None else f"answer {row['extracted']!r}"
    found = f"{extracted}, reference {row['reference_answer']!r}, {row['status']}"
    if row["judged_by"] == "reward_model":
        # It looks for no answer and sees no reference.
        found = str(row["status"])
    yield f"verdict     {verdict} ({found}), reward {row['outcome_reward']}"
    if row.get("process_score") is not None:
        scores = row["step_scores"]
        yield f"process     {row['process_score']:.3f} over {len(scores)} steps: {_numbers(scores)}"
    if row["advantage"] is None:
        yield f"advantage   none ({row['zero_reason']}): the row is not trained on"
    else:
        zero = f" (zero: {row['zero_reason']})" if row["zero_reason"] else ""
        parts = f"outcome {row['outcome_advantage']:+.3f}, process {row['process_advantage']:+.3f}"
        yield f"advantage   {row['advantage']:+.3f} = {parts}{zero}"
    yield f"tokens      {len(row['token_ids'])}, {row['finish_reason']}"


def verdict_of(row: dict[str, Any]) -> str:
    """Right, wrong or unscorable, and whose word that is unless a verifier's."""
    if row["correct"] is None:
        return "unscorable"
    word = "right" if row["correct"] else "wrong"
    match row["judged_by"]:
        case "reward_model":
            return f"predicted {word} {row['accuracy_reward']:.2f}"
        case "llm":
            return f"{word} by an LLM"
        case _:
            return word


def _indented(text: str) -> str:
    """A text of several lines, each below the first one's start, so that none can pass for a line of ours."""
    return text.replace("\n", "\n            ")


def _numbers(scores: list[float | None]) -> str:
    return " ".join("failed" if score is None else f"{score:.2f}" for score in scores)
