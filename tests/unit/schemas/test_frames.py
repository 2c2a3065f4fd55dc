"""Frames: each schema takes a good frame as it is, and names every planted fault without showing contents."""

from collections.abc import Iterator
from typing import Annotated, Any

import pandera.polars as pa
import polars as pl
import pytest

from papo.errors import DataError
from schemas.contract import HOLES
from schemas.frames import (
    SCHEMAS,
    Advantages,
    DataRows,
    Evaluations,
    Frame,
    ImplicitScores,
    Logprobs,
    Outcomes,
    ProcessScores,
    Prompts,
    Rollouts,
    Values,
    check,
    columns_of,
)

SECRET = "the contents of a row"
IDS = pl.List(pl.Int32)
FLOATS = pl.List(pl.Float32)
KEYS = {"group_id": pl.Series([0, 0, 1], dtype=pl.Int32), "sample_index": pl.Series([0, 1, 0], dtype=pl.Int32)}


def texts(*values: str | None) -> pl.Series:
    return pl.Series(list(values) if values else [SECRET] * 3, dtype=pl.String)


def lists(*values: list[Any] | None, of: Any = IDS) -> pl.Series:
    return pl.Series(list(values), dtype=of)


def floats(*values: float | None) -> pl.Series:
    return pl.Series(list(values), dtype=pl.Float64)


GOOD: dict[type[Frame], dict[str, pl.Series]] = {
    DataRows: {
        "prompt_id": texts("a", "b", "c"),
        "source": texts("x", "x", "y"),
        "prompt": texts(),
        "question": texts(),
        "reference_answer": texts("1", "2", "3"),
        "prompt_ids": lists([1], [1, 2], [3]),
    },
    Prompts: {
        "group_id": pl.Series([4, 5, 6], dtype=pl.Int32),
        "prompt_id": texts("a", "a", "b"),
        "source": texts("x", "x", "y"),
        "prompt": texts(),
        "question": texts(),
        "reference_answer": texts("1", "2", "3"),
        "prompt_ids": lists([1], [1, 2], [3]),
    },
    Rollouts: {
        **KEYS,
        "prompt_id": texts("a", "a", "b"),
        "completion": texts(),
        "token_ids": lists([1, 2], [], [3]),
        "completion_mask": lists([True, True], [], [True], of=pl.List(pl.Boolean)),
        "sampler_logprobs": lists([-0.5, 0.0], [], [-1.0], of=FLOATS),
        "token_ends": lists([1, 2], [], [1]),
        "finish_reason": texts("stop", "length", "stop"),
        "policy_version": pl.Series([0, 0, 0], dtype=pl.Int32),
        "policy_sha256": texts("x", "x", "x"),
        "row_seed": pl.Series([1, 2, 3], dtype=pl.Int64),
        "sampling_sha256": texts("y", "y", "y"),
    },
    Outcomes: {
        **KEYS,
        "outcome_reward": floats(1.0, 0.0, None),
        "correct": pl.Series([True, False, None], dtype=pl.Boolean),
        "accuracy_reward": floats(1.0, 0.0, None),
        "format_reward": floats(1.0, 0.0, None),
        "components": lists([1.0, 1.0], [0.0, 0.0], [None, 1.0], of=pl.List(pl.Float64)),
        "extracted": texts(SECRET, None, None),
        "status": texts("ok", "ok", "unscorable"),
        "judged_by": texts("verifier", "llm", "reward_model"),
        "verifier_version": texts("v", "v", "v"),
        "llm_verdict": texts(None, "unclear", None),
        "llm_reply": texts(None, SECRET, None),
    },
    ProcessScores: {
        **KEYS,
        "step_starts": lists([0, 2], [], [0]),
        "step_ends": lists([2, 4], [], [1]),
        "step_scores": lists([0.5, None], [], [1.0], of=FLOATS),
        "process_score": floats(0.5, None, 1.0),
        "status": texts("ok", "failed", "ok"),
        "scorer_version": texts("s", "s", "s"),
        "judge_sha256": texts(None, None, None),
    },
    Logprobs: {
        **KEYS,
        "old_logprobs": lists(None, None, None, of=FLOATS),
        "ref_logprobs": lists([-0.5, -0.1], [], [-1.0], of=FLOATS),
        "entropies": lists([0.5, 0.1], [], [1.0], of=FLOATS),
        "full_kl": lists(None, None, None, of=FLOATS),
    },
    Values: {
        **KEYS,
        "token_values": lists([0.5, -0.1], [], [1.0], of=FLOATS),
        "final_value": floats(0.5, 0.0, -1.0),
    },
    ImplicitScores: {**KEYS, "prm_logprobs": lists([-0.5, -0.1], [], [-1.0], of=FLOATS)},
    Advantages: {
        **KEYS,
        "outcome_advantage": floats(0.7, -0.7, None),
        "process_advantage": floats(0.0, 0.0, None),
        "advantage": floats(0.7, -0.7, None),
        "token_advantages": lists(None, None, None, of=pl.List(pl.Float64)),
        "returns": lists(None, None, None, of=pl.List(pl.Float64)),
        "process_active": pl.Series([False, False, False], dtype=pl.Boolean),
        "zero_reason": texts(None, None, "unscorable"),
    },
    Evaluations: {
        **KEYS,
        "prompt_id": texts("a", "a", "b"),
        "source": texts("x", "x", "y"),
        "completion": texts(),
        "token_count": pl.Series([2, 0, 1], dtype=pl.Int32),
        "finish_reason": texts("stop", "length", "stop"),
        "correct": pl.Series([True, False, None], dtype=pl.Boolean),
        "extracted": texts(SECRET, None, None),
        "status": texts("ok", "ok", "unscorable"),
        "judged_by": texts("verifier", "llm", "reward_model"),
        "llm_verdict": texts(None, "different", None),
        "llm_reply": texts(None, SECRET, None),
        "process_score": floats(0.5, None, 1.0),
        "policy_version": pl.Series([0, 0, 0], dtype=pl.Int32),
    },
}  # fmt: skip
NAN, INF = float("nan"), float("inf")
TWICE = {"group_id": pl.Series([0, 0, 1], dtype=pl.Int32), "sample_index": pl.Series([0, 0, 0], dtype=pl.Int32)}
FAULTS: list[tuple[type[Frame], dict[str, pl.Series], str]] = [
    (DataRows, {"prompt_id": texts("a", "b", "a")}, "prompt_id"),
    (DataRows, {"prompt_id": texts("a", "b", "")}, "prompt_id"),
    (DataRows, {"prompt_id": texts("a", "b", None)}, "prompt_id"),
    (DataRows, {"prompt": texts(SECRET, " \n", SECRET)}, "blank"),
    (DataRows, {"reference_answer": texts("1", "", "3")}, "blank"),
    (DataRows, {"reference_answer": texts("1", None, "3")}, "reference_answer"),
    (DataRows, {"prompt_ids": lists([1], [], [3])}, "prompt_ids"),
    (DataRows, {"prompt_ids": lists([1], [None], [3])}, "prompt_ids"),
    (Prompts, {"group_id": pl.Series([4, 4, 6], dtype=pl.Int32)}, "group_id"),
    (Prompts, {"group_id": pl.Series([-1, 4, 6], dtype=pl.Int32)}, "group_id"),
    (Prompts, {"prompt_ids": lists([1], [], [3])}, "prompt_ids"),
    (Rollouts, TWICE, "unique"),
    (Rollouts, {"completion_mask": lists([True], [], [True], of=pl.List(pl.Boolean))}, "one entry per token"),
    (Rollouts, {"token_ends": lists([1], [], [1])}, "one entry per token"),
    (Rollouts, {"sampler_logprobs": lists([-0.5, NAN], [], [-1.0], of=FLOATS)}, "finite"),
    (Rollouts, {"sampler_logprobs": lists([-0.5, -INF], [], [-1.0], of=FLOATS)}, "finite"),
    (Rollouts, {"sampler_logprobs": lists([-0.5, None], [], [-1.0], of=FLOATS)}, "finite"),
    (Rollouts, {"sampler_logprobs": lists([-0.5, 0.1], [], [-1.0], of=FLOATS)}, "at most 0"),
    (Rollouts, {"token_ids": lists([1, None], [], [3])}, "token_ids: entries must be there"),
    (Rollouts, {"token_ids": lists([1, -2], [], [3])}, "0 or more"),
    (Rollouts, {"token_ends": lists([2, 1], [], [1])}, "must not fall"),
    (Rollouts, {"token_ends": lists([1, len(SECRET) + 1], [], [1])}, "beyond the completion"),
    (Rollouts, {"prompt_id": texts("a", "b", "b")}, "one prompt"),
    (Rollouts, {"policy_sha256": texts("x", "x", "z")}, "one policy"),
    (Rollouts, {"sampling_sha256": texts("x", "x", "z")}, "one policy"),
    (Rollouts, {"finish_reason": texts("stop", "eos", "stop")}, "finish_reason"),
    (Rollouts, {"policy_version": pl.Series([0, -1, 0], dtype=pl.Int32)}, "policy_version"),
    (Outcomes, {"outcome_reward": floats(NAN, 0.0, None)}, "finite or null"),
    (Outcomes, {"outcome_reward": floats(INF, 0.0, None)}, "finite or null"),
    (Outcomes, {"outcome_reward": floats(None, 0.0, None)}, "null together"),
    (Outcomes, {"accuracy_reward": floats(None, 0.0, None)}, "null together"),
    (Outcomes, {"components": lists([1.0, 1.0], [0.0], [1.0, 1.0], of=pl.List(pl.Float64))}, "as many in each row"),
    (Outcomes, {"components": lists([], [], [], of=pl.List(pl.Float64))}, "as many in each row"),
    (Outcomes, {"judged_by": texts("verifier", "someone", "llm")}, "judged_by"),
    (Outcomes, {"llm_verdict": texts("equivalent", None, None)}, "judged_by llm"),
    (Outcomes, {"llm_verdict": texts(None, "equivalent", None)}, "judged_by llm"),
    (Outcomes, {"llm_verdict": texts(None, "maybe", None)}, "llm_verdict"),
    (Outcomes, TWICE, "unique"),
    (ProcessScores, {"step_scores": lists([0.5], [], [1.0], of=FLOATS)}, "one score a step"),
    (ProcessScores, {"step_ends": lists([2], [], [1])}, "one score a step"),
    (ProcessScores, {"step_starts": lists([0, 1], [], [0])}, "none in another"),
    (ProcessScores, {"step_starts": lists([0, 5], [], [0])}, "spans of tokens"),
    (ProcessScores, {"step_starts": lists([0, 2], [], [-1])}, "spans of tokens"),
    (ProcessScores, {"step_scores": lists([0.5, NAN], [], [1.0], of=FLOATS)}, "finite or null"),
    (ProcessScores, {"process_score": floats(INF, None, 1.0)}, "finite or null"),
    (Logprobs, {"ref_logprobs": lists([-0.5, NAN], [], [-1.0], of=FLOATS)}, "finite"),
    (Logprobs, {"old_logprobs": lists([-0.5, None], [], [-1.0], of=FLOATS)}, "finite"),
    (Logprobs, {"entropies": lists([INF, 0.1], [], [1.0], of=FLOATS)}, "finite"),
    (Logprobs, {"entropies": lists([0.1], [], [1.0], of=FLOATS)}, "as many as each other"),
    (Values, {"token_values": lists([0.5, NAN], [], [1.0], of=FLOATS)}, "finite"),
    (Values, {"final_value": floats(0.5, INF, 0.0)}, "finite"),
    (ImplicitScores, {"prm_logprobs": lists([None, 0.5], [], [1.0], of=FLOATS)}, "finite"),
    (Advantages, {"advantage": floats(NAN, 0.0, None)}, "finite or null"),
    (Advantages, {"process_advantage": floats(0.0, INF, None)}, "finite or null"),
    (Advantages, {"advantage": floats(None, 0.0, None)}, "null together"),
    (Evaluations, {"source": texts("x", "y", "y")}, "one source"),
    (Evaluations, {"policy_version": pl.Series([0, 1, 1], dtype=pl.Int32)}, "one policy"),
    (Evaluations, {"token_count": pl.Series([2, -1, 1], dtype=pl.Int32)}, "token_count"),
    (Evaluations, {"judged_by": texts("verifier", None, "llm")}, "judged_by"),
    (Evaluations, {"llm_verdict": texts(None, None, "equivalent")}, "judged_by llm"),
    (Evaluations, TWICE, "unique"),
]


NULLABLE: dict[type[Frame], set[str]] = {
    Outcomes: {
        "outcome_reward", "correct", "accuracy_reward", "format_reward", "extracted", "llm_verdict", "llm_reply"
    },
    ProcessScores: {"process_score", "judge_sha256"},
    Logprobs: {"old_logprobs", "ref_logprobs", "entropies", "full_kl"},
    Advantages: {
        "outcome_advantage", "process_advantage", "advantage", "token_advantages", "returns", "zero_reason"
    },
    Evaluations: {"correct", "extracted", "llm_verdict", "llm_reply", "process_score"},
}  # fmt: skip
"""Columns that may be null; those of all other columns never are."""
WITH_HOLES: dict[type[Frame], set[str]] = {Outcomes: {"components"}, ProcessScores: {"step_scores"}}
"""List columns whose entries may be null."""
COLUMNS = [(schema, name) for schema in GOOD for name in columns_of(schema)]


def faults_of(schema: type[Frame], frame: pl.DataFrame) -> str:
    with pytest.raises(DataError) as raised:
        check(frame, schema, what="rollouts-0003")
    return str(raised.value)


def test_every_frame_of_a_stage_is_tested() -> None:
    assert set(GOOD) == set(SCHEMAS.values())


@pytest.mark.parametrize("schema", GOOD, ids=lambda schema: schema.__name__)
def test_a_good_frame_is_taken_as_it_is(schema: type[Frame]) -> None:
    frame = pl.DataFrame(GOOD[schema])

    assert check(frame, schema, what="a frame").equals(frame)


@pytest.mark.parametrize(("schema", "planted", "named"), FAULTS)
def test_a_planted_fault_is_named(schema: type[Frame], planted: dict[str, pl.Series], named: str) -> None:
    """BUG-129, BUG-130: null, blank and non-finite values are refused, inside lists too."""
    message = faults_of(schema, pl.DataFrame(GOOD[schema] | planted))

    assert named in message
    assert "rollouts-0003" in message
    assert SECRET not in message


@pytest.mark.parametrize("schema", GOOD, ids=lambda schema: schema.__name__)
def test_zero_rows_are_refused(schema: type[Frame]) -> None:
    """BUG-130: an empty table never passes."""
    assert "no rows" in faults_of(schema, pl.DataFrame(GOOD[schema]).clear())


@pytest.mark.parametrize("schema", GOOD, ids=lambda schema: schema.__name__)
def test_columns_are_exactly_those_of_the_schema(schema: type[Frame]) -> None:
    """BUG-130: an unknown extra column is an error, and so is a missing one."""
    frame = pl.DataFrame(GOOD[schema])
    last = frame.columns[-1]

    assert "surplus: unknown column" in faults_of(schema, frame.with_columns(surplus=pl.lit(SECRET)))
    assert last in faults_of(schema, frame.drop(last))


def test_each_unknown_and_each_missing_column_is_named_beside_other_faults() -> None:
    frame = pl.DataFrame(GOOD[Rollouts] | {"finish_reason": texts("stop", "eos", "stop")})

    message = faults_of(Rollouts, frame.with_columns(x=1, y=2).drop("row_seed", "policy_sha256"))

    for named in ("x: unknown", "y: unknown", "row_seed: missing", "policy_sha256: missing", "finish_reason: isin"):
        assert named in message


def test_a_column_out_of_place_is_named() -> None:
    frame = pl.DataFrame(GOOD[Logprobs])

    message = faults_of(Logprobs, frame.select("group_id", "sample_index", "ref_logprobs", "old_logprobs"))

    assert "ref_logprobs: not in its place" in message


@pytest.mark.parametrize("schema", GOOD, ids=lambda schema: schema.__name__)
def test_no_column_is_coerced(schema: type[Frame]) -> None:
    """BUG-129: a column of another type is refused, though each of its values could be converted."""
    frame = pl.DataFrame(GOOD[schema])
    for name, dtype in frame.schema.items():
        if isinstance(dtype, pl.List):
            wider = pl.List(pl.Float64 if dtype.inner != pl.Float64 else pl.Float32)
            other = frame.with_columns(pl.col(name).list.eval(pl.element().cast(wider.inner)).cast(wider))
        else:
            other = frame.with_columns(pl.col(name).cast(pl.Binary if dtype == pl.String else pl.String))
        assert name in faults_of(schema, other), name


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("correct", pl.Series(["False", "True", None], dtype=pl.String)),
        ("group_id", pl.Series([0.0, 0.0, 1.9], dtype=pl.Float64)),
        ("status", pl.Series([None, None, None], dtype=pl.Null)),
    ],
)
def test_values_are_not_converted(name: str, values: pl.Series) -> None:
    """BUG-129: "False" does not become true, 1.9 not 1, nothing not a word."""
    assert name in faults_of(Outcomes, pl.DataFrame(GOOD[Outcomes] | {name: values}))


def test_all_faults_are_in_one_message() -> None:
    """BUG-130: four different faults, one report, with the rows' numbers."""
    planted = {
        **TWICE,
        "finish_reason": texts("stop", "eos", "stop"),
        "sampler_logprobs": lists([-0.5, NAN], [], [-1.0], of=FLOATS),
        "policy_version": pl.Series([0, 0, -1], dtype=pl.Int32),
    }

    message = faults_of(Rollouts, pl.DataFrame(GOOD[Rollouts] | planted))

    for named in ("unique", "finish_reason", "finite", "policy_version"):
        assert named in message
    assert len(message.splitlines()) == 6  # (The policy is also not the same one in each row.)
    finish = next(line for line in message.splitlines() if "finish_reason" in line)
    assert "1" in finish
    assert "eos" not in message


@pytest.mark.parametrize(("schema", "name"), COLUMNS, ids=lambda part: getattr(part, "__name__", part))
def test_c_27_every_column_refuses_what_its_type_does_not_allow(schema: type[Frame], name: str) -> None:
    """C-27: NaN, infinities and null, in cells and inside lists, of every column of every frame; nothing by hand."""
    kind = columns_of(schema)[name]
    for bad, why in planted_in(schema, name, kind):
        frame = pl.DataFrame(GOOD[schema] | {name: pl.Series([bad] * 3, dtype=kind)})
        assert f"\n  {name}: {why}" in faults_of(schema, frame), bad


def planted_in(schema: type[Frame], name: str, kind: Any) -> Iterator[tuple[Any, str]]:
    """Values that the column must refuse, and what is said of them."""
    if name not in NULLABLE.get(schema, set()):
        yield None, "not_nullable"
    if kind in (pl.Float32(), pl.Float64()):
        for number in (NAN, INF, -INF):
            yield number, "must be finite"
    if isinstance(kind, pl.List):
        if kind.inner in (pl.Float32(), pl.Float64()):
            for number in (NAN, INF, -INF):
                yield [0.0, number], "entries must be finite"
        if name not in WITH_HOLES.get(schema, set()):
            yield [None], "entries must be"


@pytest.mark.parametrize("schema", GOOD, ids=lambda schema: schema.__name__)
def test_c_27_what_may_be_null_is_declared(schema: type[Frame]) -> None:
    columns = schema.to_schema().columns
    assert {name for name, column in columns.items() if column.nullable} == NULLABLE.get(schema, set())
    holes = {name for name, column in columns.items() if column.metadata == HOLES}
    assert holes == WITH_HOLES.get(schema, set())


def test_c_27_a_column_of_a_type_without_a_rule_is_impossible() -> None:
    class Timed(Frame):
        at: pl.Datetime = pa.Field()

    with pytest.raises(TypeError, match="There is no rule for at: Datetime"):
        Timed.to_schema()

    class Nested(Frame):
        numbers: Annotated[pl.List, pl.List(pl.Float32())]

    with pytest.raises(TypeError, match="There is no rule for numbers"):
        Nested.to_schema()

    class Odd(Frame):
        number: pl.Float64 = pa.Field(metadata=HOLES)

    with pytest.raises(TypeError, match="no entries that may be null"):
        Odd.to_schema()


def test_c_27_a_new_column_has_its_rule_without_a_word() -> None:
    class More(Values):
        spread: Annotated[pl.List, pl.Float64()]

    frame = pl.DataFrame({**GOOD[Values], "spread": lists([1.0], [], [NAN], of=pl.List(pl.Float64))})
    assert "spread: entries must be finite" in faults_of(More, frame)


def test_a_fault_in_many_rows_is_counted_and_not_listed() -> None:
    frame = pl.concat([pl.DataFrame(GOOD[Values]).with_columns(final_value=pl.lit(INF))] * 1000)
    message = faults_of(Values, frame)
    assert "final_value: must be finite (3000 of 3000 rows: 0, 1, 2, 3, 4, …)" in message
    assert len(message) < 400
