"""An iteration's frames together: what estimators look at, and which groups are worth an update."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from papo.algorithm import Algorithm
from papo.rollouts import AdvantageTerms, ScoredRollouts
from schemas.convert import BatchFrames, scored_rollouts
from schemas.records import Batch, FrameRef, IterationState
from tasks.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Credited:
    """The rows that are trained on with their credit, and those that are not."""

    rollouts: pl.DataFrame
    scored: ScoredRollouts
    terms: AdvantageTerms
    dropped: pl.DataFrame
    """Rollouts of the groups that were left out."""


def load_batch(run: Run, batch: Batch) -> BatchFrames:
    """All frames of a batch, the shards of each joined."""
    return BatchFrames(
        rollouts=_load(run, batch.rollouts),
        outcomes=_load(run, batch.outcomes),
        scores=_load(run, batch.scores) if batch.scores else None,
        logprobs=_load(run, batch.logprobs) if batch.logprobs else None,
        values=_load(run, batch.values) if batch.values else None,
        implicit=_load(run, batch.implicit) if batch.implicit else None,
    )


def credited(run: Run, state: IterationState, batch: Batch) -> Credited:
    """The credit of the groups that are kept, computed among them."""
    frames = load_batch(run, batch)
    groups = _kept(run, state, frames)
    chosen = frames.of_groups(groups)
    scored = _scored(run, state, chosen)
    return Credited(
        rollouts=chosen.rollouts,
        scored=scored,
        terms=_terms(run.configs(state.iteration).algorithm, scored),
        dropped=frames.rollouts.filter(~pl.col("group_id").is_in(groups.implode())),
    )


def enough(run: Run, state: IterationState, batch: Batch) -> bool:
    """Whether no further round is to be drawn: there are enough groups to train on, or rounds are used up."""
    sampling, wanted = run.configs(state.iteration).sampling, run.configs(state.iteration).prompts_per_iteration
    if sampling.filter_groups is None or len(batch.prompts) == sampling.filter_groups.max_num_gen_batches:
        return True
    return len(_kept(run, state, load_batch(run, batch))) == wanted


def kept_groups(run: Run, state: IterationState, batch: Batch) -> list[int]:
    """Ids of the groups that are trained on, in the order of their drawing."""
    return _kept(run, state, load_batch(run, batch)).to_list()


def _kept(run: Run, state: IterationState, frames: BatchFrames) -> pl.Series:
    """The first `prompts_per_iteration` groups that the filter keeps; all groups without one."""
    config = run.configs(state.iteration)
    drawn = frames.rollouts["group_id"].unique(maintain_order=True)
    rule, accuracy = config.sampling.filter_groups, config.sampling.filter_accuracy
    if rule is None and accuracy is None:
        return drawn
    scored = _scored(run, state, frames)
    keeps = np.ones(len(scored.group), dtype=np.bool_)
    if accuracy is not None:
        keeps &= accuracy.keeps(scored)
    if rule is not None:
        keeps &= rule.keeps(scored, _terms(config.algorithm, scored) if rule.metric == "advantage" else _none(scored))
    kept = frames.rollouts["group_id"].filter(pl.Series(keeps)).unique(maintain_order=True)
    if rule is not None and rule.when_exhausted != "train" and len(kept) < config.prompts_per_iteration:
        return kept.clear()
    return kept.head(config.prompts_per_iteration)


def _scored(run: Run, state: IterationState, frames: BatchFrames) -> ScoredRollouts:
    algorithm = run.configs(state.iteration).algorithm
    return scored_rollouts(frames, algorithm=algorithm, iteration=state.iteration, kl_coef=state.kl_coef)


def _terms(algorithm: Algorithm, scored: ScoredRollouts) -> AdvantageTerms:
    return algorithm.advantage(scored) if len(scored.group) else _none(scored)


def _none(scored: ScoredRollouts) -> AdvantageTerms:
    nothing = np.zeros(len(scored.group))
    return AdvantageTerms(outcome=nothing, process=nothing, process_active=np.zeros(len(nothing), dtype=np.bool_))


def _load(run: Run, refs: Sequence[FrameRef]) -> pl.DataFrame:
    return pl.concat([run.store.load(ref) for ref in refs])
