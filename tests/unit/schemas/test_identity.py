"""Which fields of a run config decide what is computed: all but those named here."""

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import ValidationError

from schemas.config import RunConfig
from schemas.faults import Field, dotted
from schemas.shape import walk

CONFIG: dict[str, Any] = {
    "data": {
        "train": {"kind": "file", "path": "train.jsonl", "take": 5},
        "evaluation": {"kind": "chains", "split": "heldout"},
    },
    "model": {"path": "some/model", "cold_start": None},
    "reward": {"outcome": {"kind": "answer_match", "compare": "numeric"}},
    "scorer": {"kind": "chain_rubric"},
}
NO_IDENTITY = {
    "iterations",
    "data.train.path",
    "model.path",
    "model.cold_start",
    "engine.device",
    "engine.ranks",
    "engine.stall_seconds",
    "engine.zero_stage",
    "engine.micro_batch_size",
    "engine.activation_checkpointing",
    "engine.offload_optimizer",
    "evaluation.sound_threshold",
    "checkpoint.every",
    "checkpoint.keep_every",
    "stop.target_accuracy",
    "stop.all_truncated",
    "stop.non_finite",
    "stop.no_signal",
    "stop.plateau_evaluations",
    "stop.max_ppo_kl",
    "stop.max_kl",
    "stop.max_length_growth",
    "stop.min_entropy",
    "tracking.mlflow",
    "tracking.experiment",
    "on_inexact_replay",
    "gap_alarm",
}
NOT_ALONE = {
    "algorithm.loss_norm_constant",
    "algorithm.use_kl_in_reward",
    "algorithm.ref_update_interval",
    "reward.also",
    "reward.second_opinion",
}
"""Fields that no other value of fits without a change elsewhere; kinds are another section, seen below."""


def leaves(value: Any, at: Field = ()) -> Iterator[tuple[Field, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*at, name))
    else:
        yield at, value


def literals(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for inner in get_args(annotation) for choice in literals(inner)]


def others(place: Field, value: Any) -> list[Any]:
    """Values to try in place of `value`; what does not fit the field is refused by it."""
    entry, _ = walk(RunConfig, DUMP, place)[-1]
    choices = [choice for choice in literals(entry.annotation) if choice != value] if entry else []
    match value:
        case bool():
            return [not value]
        case int() | float():
            return [*choices, value + 1, value - 1, value + 0.5, value * 0.5]
        case str():
            return [*choices, f"{value}-other", 3]
        case list():
            return [[*value, "other"], [other * 0.5 for other in value if isinstance(other, float)], value[:1]]
        case _:
            return [*choices, 1, 0.5, 3.0, "other", {}, [0.25, 0.5]]


def changed(place: Field, value: Any) -> RunConfig | None:
    """The config with another value at `place`, or None if none fits alone."""
    for other in others(place, value):
        dump = RunConfig.model_validate(CONFIG).model_dump(mode="json")
        holder: Any = dump
        for part in place[:-1]:
            holder = holder[part]
        holder[place[-1]] = other
        try:
            config = RunConfig.model_validate(dump)
        except ValidationError:
            continue
        if config != BASE:
            return config
    return None


BASE = RunConfig.model_validate(CONFIG)
DUMP = BASE.model_dump(mode="json")
LEAVES = [(place, value) for place, value in leaves(DUMP) if place[-1] != "kind"]


@pytest.mark.parametrize(("place", "value"), LEAVES, ids=[dotted(place) for place, _ in LEAVES])
def test_one_field_changes_the_hash_exactly_if_it_is_identity(place: Field, value: Any) -> None:
    config = changed(place, value)

    if config is None:
        assert dotted(place) in NOT_ALONE
        return
    assert (config.sha256 != BASE.sha256) == (dotted(place) not in NO_IDENTITY)


def test_no_field_is_named_that_does_not_exist() -> None:
    assert {dotted(place) for place, _ in LEAVES} >= NO_IDENTITY | NOT_ALONE


@pytest.mark.parametrize(
    "patch",
    [
        {"scorer": {"kind": "equation_lines"}},
        {"scorer": None},
        {"algorithm": {"advantage": {"kind": "grpo"}}},
        {
            "algorithm": {
                "advantage": {"kind": "papo"},
                "loss_agg_mode": "seq-mean-token-sum-norm",
                "loss_norm_constant": 9,
            }
        },
        {"evaluation": None},
        {"reward": {**CONFIG["reward"], "also": [{"reward": {"kind": "ngram_repetition"}}]}},
        {"critic": {"warmup_iterations": 1}},
        {"sampling": {"filter_groups": {}}},
        {"sampling": {"filter_accuracy": {}}},
        {"data": {**CONFIG["data"], "evaluation": None}},
        {"data": {**CONFIG["data"], "train": {"kind": "chains"}}},
    ],
)
def test_another_section_is_another_identity(patch: dict[str, Any]) -> None:
    assert RunConfig.model_validate(CONFIG | patch).sha256 != BASE.sha256


def test_no_path_of_a_machine_is_identity() -> None:
    other = {**CONFIG, "model": {"cold_start": "/mnt/x/sft.yaml"}}
    other["data"] = {**CONFIG["data"], "train": {**CONFIG["data"]["train"], "path": "/mnt/x/train.jsonl"}}

    assert RunConfig.model_validate(other).sha256 == BASE.sha256
    assert "/mnt" not in str(RunConfig.model_validate(other).identity)


def test_the_hash_is_of_the_identity_alone_and_the_same_after_a_round_trip() -> None:
    again = RunConfig.model_validate_json(BASE.model_dump_json())

    assert again == BASE
    assert again.sha256 == BASE.sha256
    assert BASE.identity["algorithm"]["advantage"]["lambda_process"] == 1.0
