"""Contracts of the frames: strict, never coerced, finite inside lists too, and true to their relations.

All but Prompts are keyed by (`group_id`, `sample_index`). A group is one draw of one data row.
"""

from functools import cache
from typing import Annotated, Any, cast, get_args

import pandera.polars as pa
import polars as pl

from papo.errors import DataError
from papo.rewards import JudgedBy, Opinion

Ids = Annotated[pl.List, pl.Int32()]
Floats = Annotated[pl.List, pl.Float32()]
Flags = Annotated[pl.List, pl.Boolean()]
_KEY = ["group_id", "sample_index"]


def _frame(data: pa.PolarsData) -> pl.LazyFrame:
    return data.lazyframe


def _finite(column: str) -> pl.Expr:
    """Every entry of a list column is there and finite. (A plain range check passes null and NaN inside lists.)"""
    entry = pl.element()
    return pl.col(column).list.eval(entry.is_not_null() & entry.is_finite()).list.all()


def _whole(column: str) -> pl.Expr:
    return pl.col(column).list.eval(pl.element().is_not_null()).list.all()


def _flipped(data: pa.PolarsData) -> pl.LazyFrame:
    by_llm = pl.col("correct").fill_null(False) & (pl.col("judged_by") == "llm")
    return _frame(data).select((pl.col("llm_verdict") != "equivalent").fill_null(True) | by_llm)


def _same_length(first: str, *others: str) -> pl.Expr:
    return pl.all_horizontal(*(pl.col(first).list.len() == pl.col(other).list.len() for other in others))


class Frame(pa.DataFrameModel):
    class Config(pa.DataFrameModel.Config):
        strict = True
        coerce = False
        ordered = True


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

    @pa.dataframe_check(error="prompt_ids must be one or more whole ids")
    def has_ids(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select((pl.col("prompt_ids").list.len() > 0) & _whole("prompt_ids"))


class Prompts(Frame):
    """One iteration's draw of the data: one row a group."""

    group_id: pl.Int32 = pa.Field(unique=True, ge=0)
    prompt_id: pl.String = pa.Field()
    source: pl.String = pa.Field()
    prompt: pl.String = pa.Field()
    question: pl.String = pa.Field()
    reference_answer: pl.String = pa.Field()
    prompt_ids: Ids

    @pa.dataframe_check(error="prompt_ids must be one or more whole ids")
    def has_ids(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select((pl.col("prompt_ids").list.len() > 0) & _whole("prompt_ids"))


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

    @pa.dataframe_check(error="sampler_logprobs must be finite and at most 0")
    def logprobs_finite(cls, data: pa.PolarsData) -> pl.LazyFrame:
        not_positive = pl.col("sampler_logprobs").list.eval(pl.element() <= 0).list.all()
        return _frame(data).select(_finite("sampler_logprobs") & not_positive & _whole("token_ids"))


class Outcomes(Keyed):
    outcome_reward: pl.Float64 = pa.Field(nullable=True)
    """Shaped reward; null: unscorable, leaves statistics, loss and divisor."""
    correct: pl.Boolean = pa.Field(nullable=True)
    """From the unshaped outcome; null with the reward."""
    accuracy_reward: pl.Float64 = pa.Field(nullable=True)
    format_reward: pl.Float64 = pa.Field(nullable=True)
    components: Annotated[pl.List, pl.Float64()] = pa.Field()
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

    @pa.dataframe_check(error="outcome_reward must be finite or null, and null together with correct")
    def scored(cls, data: pa.PolarsData) -> pl.LazyFrame:
        reward, correct = pl.col("outcome_reward"), pl.col("correct")
        return _frame(data).select((reward.is_null() | reward.is_finite()) & (reward.is_null() == correct.is_null()))

    @pa.dataframe_check(error="a row whose llm_verdict is equivalent is correct and judged_by llm")
    def corrected(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _flipped(data)


class ProcessScores(Keyed):
    step_starts: Ids
    step_ends: Ids
    """Half-open token spans, one a step."""
    step_scores: Floats
    """One a step; null where the scorer failed."""
    process_score: pl.Float64 = pa.Field(nullable=True)
    """The steps' aggregate; null: not scored or failed."""
    status: pl.String = pa.Field()
    scorer_version: pl.String = pa.Field()
    judge_sha256: pl.String = pa.Field(nullable=True)

    @pa.dataframe_check(error="there must be one score a step, and each step a span of tokens")
    def one_a_step(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select(_same_length("step_starts", "step_ends", "step_scores"))

    @pa.dataframe_check(error="scores must be finite or null")
    def finite(cls, data: pa.PolarsData) -> pl.LazyFrame:
        entry = pl.element()
        steps = pl.col("step_scores").list.eval(entry.is_null() | entry.is_finite()).list.all()
        score = pl.col("process_score")
        return _frame(data).select(steps & (score.is_null() | score.is_finite()))


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

    @pa.dataframe_check(error="numbers must be finite")
    def finite(cls, data: pa.PolarsData) -> pl.LazyFrame:
        names = ("old_logprobs", "ref_logprobs", "entropies", "full_kl")
        return _frame(data).select(pl.all_horizontal(*(pl.col(name).is_null() | _finite(name) for name in names)))


class Values(Keyed):
    """What the critic expects, before it is trained on the rows."""

    token_values: Floats
    """Before each token."""
    final_value: pl.Float64 = pa.Field()
    """After the last token: what a truncated row may still earn."""

    @pa.dataframe_check(error="values must be finite")
    def finite(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select(_finite("token_values") & pl.col("final_value").is_finite())


class ImplicitScores(Keyed):
    """Log-probs of each token under the implicit PRM: less those of its reference, they are process rewards."""

    prm_logprobs: Floats

    @pa.dataframe_check(error="log-probs must be finite")
    def finite(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _frame(data).select(_finite("prm_logprobs"))


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

    @pa.dataframe_check(error="advantages must be finite or null")
    def finite(cls, data: pa.PolarsData) -> pl.LazyFrame:
        columns = [pl.col(name) for name in ("outcome_advantage", "process_advantage", "advantage")]
        return _frame(data).select(pl.all_horizontal(*(column.is_null() | column.is_finite() for column in columns)))


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


@cache
def columns_of(schema: type[Frame]) -> dict[str, Any]:
    """The columns of a frame with their polars types, in order: what an empty frame of it is made with."""
    return {name: column.dtype.type for name, column in schema.to_schema().columns.items()}


def check(frame: pl.DataFrame, schema: type[Frame], *, what: str) -> pl.DataFrame:
    """`frame` itself, if it fulfils `schema`.

    Raises DataError with all faults at once, each with the number of failing rows and the first of them; never the
    rows' contents, which may be long and hostile.
    """
    if frame.height == 0:
        raise DataError(f"{what} has no rows, but {schema.__name__} must have at least one.")
    try:
        return cast("pl.DataFrame", schema.validate(frame, lazy=True))
    except pa.errors.SchemaErrors as error:
        unknown = [name for name in frame.columns if name not in schema.to_schema().columns]
        faults = _faults(error.failure_cases, unknown)
        raise DataError(f"{what} is not a valid {schema.__name__} frame:\n{faults}") from None


def _faults(cases: Any, unknown: list[str]) -> str:
    # pandera names only the first unknown column.
    lines = [f"  {name}: unknown column" for name in unknown]
    grouped = cases.group_by("column", "check", maintain_order=True).agg(
        pl.len().alias("count"),
        pl.col("index").drop_nulls().unique(maintain_order=True).head(5),
        pl.col("failure_case").unique(maintain_order=True).head(20),
    )
    for row in grouped.iter_rows(named=True):
        match row["check"]:
            case "column_in_schema":
                continue
            case "column_in_dataframe":
                lines += [f"  {name}: missing column" for name in row["failure_case"]]
            case "column_ordered":
                lines += [f"  {name}: not in its place among the columns" for name in row["failure_case"]]
            case check:
                where = f" (rows {', '.join(map(str, row['index']))})" if row["index"] else ""
                lines.append(f"  {row['column']}: {check}{where}")
    return "\n".join(lines)


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
