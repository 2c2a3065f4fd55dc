"""The frames: their columns, and the relations between these. What follows from a type is in `schemas.contract`.

All but Prompts are keyed by (`group_id`, `sample_index`). A group is one draw of one data row.
"""

from typing import Annotated, get_args

import pandera.polars as pa
import polars as pl

from papo.rewards import JudgedBy, Opinion
from schemas.contract import HOLES, Frame, check, columns_of

Ids = Annotated[pl.List, pl.Int32()]
Floats = Annotated[pl.List, pl.Float32()]
Flags = Annotated[pl.List, pl.Boolean()]
_KEY = ["group_id", "sample_index"]


def _frame(data: pa.PolarsData) -> pl.LazyFrame:
    return data.lazyframe


def _flipped(data: pa.PolarsData) -> pl.LazyFrame:
    by_llm = pl.col("correct").fill_null(False) & (pl.col("judged_by") == "llm")
    return _frame(data).select((pl.col("llm_verdict") != "equivalent").fill_null(True) | by_llm)


def _same_length(first: str, *others: str) -> pl.Expr:
    return pl.all_horizontal(*(pl.col(first).list.len() == pl.col(other).list.len() for other in others))


def _null_together(first: str, *others: str) -> pl.Expr:
    return pl.all_horizontal(*(pl.col(first).is_null() == pl.col(other).is_null() for other in others))


def _never_falls(column: str) -> pl.Expr:
    return (pl.col(column).list.diff().list.min() >= 0).fill_null(True)


def _not_below_zero(column: str) -> pl.Expr:
    return (pl.col(column).list.min() >= 0).fill_null(True)


def _one_a_group(*columns: str) -> pl.Expr:
    return pl.all_horizontal(*(pl.col(column).n_unique().over("group_id") == 1 for column in columns))


def _one_value(*columns: str) -> pl.Expr:
    return pl.all_horizontal(*(pl.col(column) == pl.col(column).first() for column in columns))


class DataRows(Frame):
    """A prepared data set: prompts tokenised once, in the source's order."""

    prompt_id: pl.String = pa.Field(unique=True, str_length={"min_value": 1})
    source: pl.String = pa.Field()
    """Name of the row's source in a mixture, else the split's."""
    prompt: pl.String = pa.Field()
    """Text after the template."""
    question: pl.String = pa.Field()
    """The source's own text (messages as JSON), which scorers see."""
    reference_answer: pl.String = pa.Field()
    prompt_ids: Ids

    @pa.dataframe_check(error="prompt and reference_answer must not be blank")
    def not_blank(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select(
            (pl.col("prompt").str.strip_chars() != "") & (pl.col("reference_answer").str.strip_chars() != "")
        )

    @pa.dataframe_check(error="prompt_ids must be one or more ids, none below 0")
    def has_ids(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select((pl.col("prompt_ids").list.len() > 0) & _not_below_zero("prompt_ids"))


class Prompts(Frame):
    """One iteration's draw of the data: one row a group."""

    group_id: pl.Int32 = pa.Field(unique=True, ge=0)
    prompt_id: pl.String = pa.Field()
    source: pl.String = pa.Field()
    prompt: pl.String = pa.Field()
    question: pl.String = pa.Field()
    reference_answer: pl.String = pa.Field()
    prompt_ids: Ids

    @pa.dataframe_check(error="prompt_ids must be one or more ids, none below 0")
    def has_ids(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select((pl.col("prompt_ids").list.len() > 0) & _not_below_zero("prompt_ids"))


class Keyed(Frame):
    group_id: pl.Int32 = pa.Field(ge=0)
    sample_index: pl.Int32 = pa.Field(ge=0)

    @pa.dataframe_check(error="(group_id, sample_index) must be unique")
    def unique_key(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select(~pl.struct(_KEY).is_duplicated())


class Rollouts(Keyed):
    prompt_id: pl.String = pa.Field()
    completion: pl.String = pa.Field()
    """Text before the end token, special tokens left out unless the config keeps them."""
    token_ids: Ids
    completion_mask: Flags
    sampler_logprobs: Floats
    """Log-probs of the chosen tokens at the sampling temperature."""
    token_ends: Ids
    """Characters of `completion` that are covered up to and including each token."""
    finish_reason: pl.String = pa.Field(isin=["stop", "stop_string", "length"])
    policy_version: pl.Int32 = pa.Field(ge=0)
    policy_sha256: pl.String = pa.Field()
    row_seed: pl.Int64 = pa.Field()
    sampling_sha256: pl.String = pa.Field()

    @pa.dataframe_check(
        error="token_ids, completion_mask, sampler_logprobs and token_ends must have one entry per token"
    )
    def aligned(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select(_same_length("token_ids", "completion_mask", "sampler_logprobs", "token_ends"))

    @pa.dataframe_check(error="token_ids must be 0 or more, sampler_logprobs at most 0")
    def bounded(cls, data: pa.PolarsData) -> pl.LazyFrame:
        at_most_0 = (pl.col("sampler_logprobs").list.max() <= 0).fill_null(True)
        return _frame(data).select(_not_below_zero("token_ids") & at_most_0)

    @pa.dataframe_check(error="token_ends must not fall, and not reach beyond the completion")
    def inside(cls, data: pa.PolarsData) -> pl.LazyFrame:
        within = (pl.col("token_ends").list.last() <= pl.col("completion").str.len_chars()).fill_null(True)
        return _frame(data).select(_never_falls("token_ends") & _not_below_zero("token_ends") & within)

    @pa.dataframe_check(error="a group must be one prompt")
    def one_prompt(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select(_one_a_group("prompt_id"))

    @pa.dataframe_check(error="all rows must be of one policy, sampled by one set of settings")
    def one_policy(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select(_one_value("policy_version", "policy_sha256", "sampling_sha256"))


class Outcomes(Keyed):
    outcome_reward: pl.Float64 = pa.Field(nullable=True)
    """Shaped reward; null: unscorable, leaves statistics, loss and divisor."""
    correct: pl.Boolean = pa.Field(nullable=True)
    """From the unshaped outcome; null with the reward."""
    accuracy_reward: pl.Float64 = pa.Field(nullable=True)
    format_reward: pl.Float64 = pa.Field(nullable=True)
    components: Annotated[pl.List, pl.Float64()] = pa.Field(metadata=HOLES)
    """What the outcome reward is made of, before weights: accuracy (scaled), format, further ones as declared."""
    extracted: pl.String = pa.Field(nullable=True)
    status: pl.String = pa.Field()
    judged_by: pl.String = pa.Field(isin=get_args(JudgedBy))
    """Whose word `correct` is: only a verifier's counts as accuracy."""
    verifier_version: pl.String = pa.Field()
    llm_verdict: pl.String = pa.Field(nullable=True, isin=get_args(Opinion))
    """Of the second opinion on what the verifier had rejected; null: not asked."""
    llm_reply: pl.String = pa.Field(nullable=True)
    """The end of what the LLM wrote; null where it was not asked or wrote nothing."""

    @pa.dataframe_check(error="outcome_reward, accuracy_reward and correct must be null together")
    def scored(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select(_null_together("outcome_reward", "accuracy_reward", "correct"))

    @pa.dataframe_check(error="components must be as many in each row, one or more")
    def as_many(cls, data: pa.PolarsData) -> pl.LazyFrame:
        count = pl.col("components").list.len()
        return _frame(data).select((count > 0) & (count == count.first()))

    @pa.dataframe_check(error="a row whose llm_verdict is equivalent is correct and judged_by llm")
    def corrected(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _flipped(data)


class ProcessScores(Keyed):
    step_starts: Ids
    step_ends: Ids
    """Half-open token spans, one a step."""
    step_scores: Floats = pa.Field(metadata=HOLES)
    """One a step; null where the scorer failed."""
    process_score: pl.Float64 = pa.Field(nullable=True)
    """The steps' aggregate; null: not scored or failed."""
    status: pl.String = pa.Field()
    scorer_version: pl.String = pa.Field()
    judge_sha256: pl.String = pa.Field(nullable=True)

    @pa.dataframe_check(error="there must be one start, one end and one score a step")
    def one_a_step(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select(_same_length("step_starts", "step_ends", "step_scores"))

    @pa.dataframe_check(error="steps must be spans of tokens in their order, none in another")
    def in_order(cls, data: pa.PolarsData) -> pl.LazyFrame:
        starts, steps = pl.col("step_starts"), pl.col("step_starts").list.len()
        # (Lists of unequal lengths cannot be compared; that they are is the other check's to say.)
        ends = pl.when(_same_length("step_starts", "step_ends")).then(pl.col("step_ends")).otherwise(starts)
        before = ends.list.slice(0, (steps.cast(pl.Int64) - 1).clip(lower_bound=0))
        lengths, gaps = (ends - starts).list.min(), (starts.list.slice(1) - before).list.min()
        forward = (lengths >= 0).fill_null(True) & (gaps >= 0).fill_null(True)
        return _frame(data).select(forward & _not_below_zero("step_starts"))


class Logprobs(Keyed):
    """What policy and reference say of each token before the first optimizer step. Null: the algorithm needs none."""

    old_logprobs: Floats = pa.Field(nullable=True)
    """The learner's."""
    ref_logprobs: Floats = pa.Field(nullable=True)
    """The reference's."""
    entropies: Floats = pa.Field(nullable=True)
    """Of the policy at each token, in nats."""
    full_kl: Floats = pa.Field(nullable=True)
    """KL(policy, reference) over the whole vocabulary at each token, in nats."""

    @pa.dataframe_check(error="the lists of a row must have one entry per token, as many as each other")
    def aligned(cls, data: pa.PolarsData) -> pl.LazyFrame:
        lengths = [pl.col(name).list.len() for name in ("old_logprobs", "ref_logprobs", "entropies", "full_kl")]
        # (Least and greatest of those that are there.)
        return _frame(data).select(
            (pl.min_horizontal(lengths) == pl.max_horizontal(lengths)).fill_null(True).alias("aligned")
        )


class Values(Keyed):
    """What the critic expects, before it is trained on the rows."""

    token_values: Floats
    """Before each token."""
    final_value: pl.Float64 = pa.Field()
    """After the last token: what a truncated row may still earn."""


class ImplicitScores(Keyed):
    """Log-probs of each token under the implicit PRM: less those of its reference, they are process rewards."""

    prm_logprobs: Floats


class Advantages(Keyed):
    outcome_advantage: pl.Float64 = pa.Field(nullable=True)
    process_advantage: pl.Float64 = pa.Field(nullable=True)
    advantage: pl.Float64 = pa.Field(nullable=True)
    """null: the row is unscorable and leaves loss and divisor."""
    token_advantages: Annotated[pl.List, pl.Float64()] = pa.Field(nullable=True)
    """One a token where the estimator varies over tokens, else null."""
    returns: Annotated[pl.List, pl.Float64()] = pa.Field(nullable=True)
    """One a token: what the critic is trained towards, else null."""
    process_active: pl.Boolean = pa.Field()
    zero_reason: pl.String = pa.Field(nullable=True)

    @pa.dataframe_check(error="outcome_advantage, process_advantage and advantage must be null together")
    def credited(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select(_null_together("advantage", "outcome_advantage", "process_advantage"))

    @pa.dataframe_check(error="token_advantages and returns must have one entry per token, as many as each other")
    def aligned(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select(_same_length("token_advantages", "returns").fill_null(True))


class Evaluations(Keyed):
    prompt_id: pl.String = pa.Field()
    source: pl.String = pa.Field()
    completion: pl.String = pa.Field()
    token_count: pl.Int32 = pa.Field(ge=0)
    finish_reason: pl.String = pa.Field(isin=["stop", "stop_string", "length"])
    correct: pl.Boolean = pa.Field(nullable=True)
    extracted: pl.String = pa.Field(nullable=True)
    status: pl.String = pa.Field()
    judged_by: pl.String = pa.Field(isin=get_args(JudgedBy))
    llm_verdict: pl.String = pa.Field(nullable=True, isin=get_args(Opinion))
    llm_reply: pl.String = pa.Field(nullable=True)
    """Both as in Outcomes."""
    process_score: pl.Float64 = pa.Field(nullable=True)
    policy_version: pl.Int32 = pa.Field(ge=0)

    @pa.dataframe_check(error="a group must be one prompt of one source, and all rows of one policy")
    def one_prompt(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select(_one_a_group("prompt_id", "source") & _one_value("policy_version"))

    @pa.dataframe_check(error="a row whose llm_verdict is equivalent is correct and judged_by llm")
    def corrected(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _flipped(data)


SCHEMAS: dict[str, type[Frame]] = {
    "prepare": DataRows,
    "sample": Prompts,
    "generate": Rollouts,
    "verify": Outcomes,
    "score": ProcessScores,
    "logprobs": Logprobs,
    "values": Values,
    "implicit": ImplicitScores,
    "advantage": Advantages,
    "evaluate": Evaluations,
}
"""The frame that each durable stage makes."""


__all__ = [
    "SCHEMAS",
    "Advantages",
    "DataRows",
    "Evaluations",
    "Frame",
    "ImplicitScores",
    "Logprobs",
    "Outcomes",
    "ProcessScores",
    "Prompts",
    "Rollouts",
    "Values",
    "check",
    "columns_of",
]
