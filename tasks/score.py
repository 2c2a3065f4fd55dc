"""score: give each rollout's reasoning steps their process scores."""

from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import polars as pl

from papo.scorers import ProcessScorer, StepScores
from papo.segmentation import Segmenter, segment_scores
from papo.steps import token_spans
from schemas.canonical import sha256_of
from schemas.config import RunConfig
from schemas.frames import ProcessScores, columns_of
from schemas.records import FrameRef, IterationState
from tasks.run import Run
from tasks.stage import stage

_KEY = ["group_id", "sample_index"]


@stage(version=1)
def score(
    run: Run,
    state: IterationState,
    prompts: FrameRef,
    rollouts: list[FrameRef],
    outcomes: list[FrameRef],
    logprobs: list[FrameRef],
) -> list[FrameRef]:
    """ProcessScores: one shard for each shard of rollouts; none where the run has no scorer."""
    config = run.configs(state.iteration)
    cuts = config.algorithm.needs.entropies
    scorer, only_correct = config.scorer, scores_only_correct(config)
    if scorer is None:
        return []
    return [
        run.made(
            stage=score.name,
            version=score.version,
            iteration=state.iteration,
            shard=shard.shard,
            key_parts={
                "prompts": prompts.sha256,
                "rollouts": shard.sha256,
                "outcomes": outcome.sha256 if only_correct else None,
                "scorer": scorer.version,
                "segmenter": config.segmenter_identity,
                "entropies": said.sha256 if cuts and said else None,
            },
            make=partial(_scored, run, config, prompts, shard, outcome, said if cuts else None),
        )
        for shard, outcome, said in zip_longest(rollouts, outcomes, logprobs)
    ]


def _scored(
    run: Run, config: RunConfig, prompts: FrameRef, shard: FrameRef, outcome: FrameRef, said: FrameRef | None
) -> pl.DataFrame:
    load, scorer = run.store.load, config.scorer
    assert scorer is not None, "only runs with a scorer come here"
    frame = process_scores(load(shard), load(prompts), load(outcome), scorer, only_correct=scores_only_correct(config))
    segmenter = config.segmenter
    return frame if segmenter is None else of_segments(frame, load(shard), said and load(said), segmenter)


def of_segments(
    scores: pl.DataFrame, rollouts: pl.DataFrame, logprobs: pl.DataFrame | None, segmenter: Segmenter
) -> pl.DataFrame:
    """The scores of segments in place of those of the scorer's own steps (PRPO); `logprobs` brings the entropies."""
    rows = scores.join(rollouts.select(*_KEY, "completion", "token_ends"), on=_KEY, how="left", maintain_order="left")
    if logprobs is not None:
        rows = rows.join(logprobs.select(*_KEY, "entropies"), on=_KEY, how="left", maintain_order="left")
    made = [_segmented(row, segmenter) for row in rows.iter_rows(named=True)]
    return pl.DataFrame(made, schema=columns_of(ProcessScores))


def _segmented(row: dict[str, Any], segmenter: Segmenter) -> dict[str, Any]:
    steps = list(zip(row["step_starts"], row["step_ends"], strict=True))
    entropies = row.get("entropies")
    segments = segmenter.segments(
        row["completion"], row["token_ends"], entropies=None if entropies is None else np.array(entropies)
    )
    scores = segment_scores(segments, steps=steps, scores=row["step_scores"])
    if row["status"] == "not_scored":
        segments, scores = (), []
    kept = {name: row[name] for name in columns_of(ProcessScores)}
    return kept | {
        "step_starts": [start for start, _ in segments],
        "step_ends": [end for _, end in segments],
        "step_scores": scores,
    }


def scores_only_correct(config: RunConfig) -> bool:
    """Whether the algorithm asks for scores of correct rollouts only (PAPO: a judge is not paid for the others)."""
    return getattr(config.algorithm.advantage, "prm_on", "all") == "correct"


def process_scores(
    rollouts: pl.DataFrame, prompts: pl.DataFrame, outcomes: pl.DataFrame, scorer: ProcessScorer, *, only_correct: bool
) -> pl.DataFrame:
    """Each step's span of tokens and its score, and the aggregate a rollout."""
    keyed = rollouts.join(
        prompts.select("group_id", "question", "reference_answer"), on="group_id", how="left", maintain_order="left"
    ).join(outcomes.select("group_id", "sample_index", "correct"), on=["group_id", "sample_index"], how="left",
           maintain_order="left")  # fmt: skip
    rows = [_row(row, scorer, only_correct=only_correct) for row in keyed.iter_rows(named=True)]
    return pl.DataFrame(rows, schema=columns_of(ProcessScores))


def _row(row: dict[str, Any], scorer: ProcessScorer, *, only_correct: bool) -> dict[str, Any]:
    key = {"group_id": row["group_id"], "sample_index": row["sample_index"], "scorer_version": scorer.version}
    correct = bool(row["correct"])
    if only_correct and not correct:
        nothing: dict[str, Any] = {"step_starts": [], "step_ends": [], "step_scores": []}
        return {**key, **nothing, "process_score": None, "status": "not_scored", "judge_sha256": None}
    scored: StepScores = scorer(
        row["question"], row["completion"], reference_answer=row["reference_answer"], correct=correct
    )
    spans = token_spans(scored.spans, row["token_ends"])
    return {
        **key,
        "step_starts": [start for start, _ in spans],
        "step_ends": [end for _, end in spans],
        "step_scores": list(scored.scores),
        "process_score": scored.aggregate,
        "status": scored.status,
        "judge_sha256": sha256_of([scorer.version, row["question"], row["completion"]]),
    }
