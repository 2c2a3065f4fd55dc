"""No figure of a reward model's predictions bears the name of a verified one."""

import re
from dataclasses import fields

import pytest

from flows.reference import field_docs
from papo.correctness import OF_CORRECTNESS, accuracy_in, is_predicted, named, predicted_name
from papo.metrics import BatchFigures, IterationSummary, PrmFigures


@pytest.mark.parametrize("kind", [IterationSummary, BatchFigures, PrmFigures])
def test_every_metric_of_right_or_wrong_rows_is_listed(kind: type) -> None:
    docs = field_docs(kind)
    speaks = {field.name for field in fields(kind) if re.search(r"\b(right|wrong)\b", docs[field.name])}
    assert speaks == speaks & set(OF_CORRECTNESS)
    assert not {field.name for field in fields(kind)} & set(OF_CORRECTNESS) - speaks


def test_a_metric_keeps_its_stage_and_its_source_in_front_and_behind() -> None:
    assert predicted_name("accuracy") == "predicted_accuracy"
    assert predicted_name("accuracy/gsm8k") == "predicted_accuracy/gsm8k"
    assert predicted_name("evaluation/accuracy/gsm8k") == "evaluation/predicted_accuracy/gsm8k"
    assert predicted_name("evaluation/length_mean") == "evaluation/length_mean"
    assert predicted_name("outcome_mean") == "outcome_mean"


def test_one_row_of_a_reward_model_makes_the_batch_a_prediction_and_an_llm_does_not() -> None:
    assert is_predicted(["verifier", "reward_model"])
    assert not is_predicted(["verifier", "llm"])
    figures = {"accuracy": 0.5, "rollouts": 4}
    assert named(figures, predicted=False) == figures
    assert named(figures, predicted=True) == {"predicted_accuracy": 0.5, "rollouts": 4}


def test_the_accuracy_is_called_by_whose_word_it_is() -> None:
    assert accuracy_in({"accuracy": 0.5}) == ("accuracy", 0.5)
    assert accuracy_in({"predicted_accuracy": None}) == ("predicted accuracy", None)
    assert accuracy_in({"accuracy": 1.0, "evaluation/predicted_accuracy": 0.1}, prefix="evaluation/") == (
        "predicted accuracy",
        0.1,
    )
    assert accuracy_in({}) == ("accuracy", None)
