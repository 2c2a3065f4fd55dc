"""Whose word correctness is: what a reward model predicts never bears the name of what a verifier found.

Where a reward model judges, each metric that speaks of right or wrong rows has `predicted_` before its name:
`predicted_accuracy` and `evaluation/predicted_accuracy` stand where `accuracy` and `evaluation/accuracy` do otherwise,
and the latter are absent. A batch of which any row is a reward model's is a predicted one. What an LLM said of single
rows that a verifier had rejected is not: those rows are counted by themselves.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

Number = TypeVar("Number", bound=float | int | bool | None)
PREDICTED = "predicted_"
OF_CORRECTNESS = (
    "accuracy", "drawn_accuracy", "sound_ratio", "all_correct_ratio", "all_wrong_ratio", "correct_advantage_mean",
    "correct_advantage_min", "correct_advantage_max", "correct_process_advantage_mean", "wrong_advantage_mean",
    "wrong_advantage_min", "wrong_advantage_max", "length_correct_mean", "length_wrong_mean", "order_violations",
    "prm_dpo_accuracy", "prm_accuracy",
)  # fmt: skip
"""Metrics that speak of right or wrong rows, without the prefix of their stage; `accuracy/NAME` is one of them."""


def is_predicted(judged_by: Iterable[str]) -> bool:
    """Whether a batch's correctness is a prediction, from its rows' `judged_by`."""
    return "reward_model" in judged_by


def predicted_name(name: str) -> str:
    """The name of a metric where a reward model judges: `evaluation/accuracy/gsm8k` becomes
    `evaluation/predicted_accuracy/gsm8k`; one that does not speak of correctness keeps its own."""
    stage, prefix, rest = name.rpartition("evaluation/")
    return f"{stage}{prefix}{PREDICTED}{rest}" if rest.split("/")[0] in OF_CORRECTNESS else name


def named(figures: Mapping[str, Number], *, predicted: bool) -> dict[str, Number]:
    """The figures under the names that they have by whose word they are."""
    return {predicted_name(name) if predicted else name: number for name, number in figures.items()}


def accuracy_in(figures: Mapping[str, Number], *, prefix: str = "") -> tuple[str, Number | None]:
    """The accuracy among an iteration's figures and what it is called: "accuracy" or "predicted accuracy"."""
    predicted = f"{prefix}{PREDICTED}accuracy"
    if predicted in figures:
        return "predicted accuracy", figures[predicted]
    return "accuracy", figures.get(f"{prefix}accuracy")
