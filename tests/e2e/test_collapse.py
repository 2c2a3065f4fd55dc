"""A reward per line is summed: writing pays more than being right, and the policy stops answering. Not so with PAPO."""

from collections.abc import Callable

from tests.e2e.trained import Trained

Train = Callable[..., Trained]
LENGTH_PAYING = (
    "scorer.kind=equation_lines", "iterations=26", "evaluation.every=26", "data.evaluation.count=100",
    "stop.all_truncated=99",
)  # fmt: skip


def test_summed_rewards_collapse_on_a_scorer_that_pays_for_length(train: Train) -> None:
    run = train("sum", *LENGTH_PAYING, "algorithm.advantage.kind=sum")
    before, after = run.accuracies
    assert before > 0.25
    assert after < 0.1
    first, last = run.summary(0), run.summary(25)
    assert last["process_mean"] > 2 * first["process_mean"], "what was paid for went up"
    assert last["truncated_ratio"] > 0.8


def test_papo_does_not_collapse_on_it(train: Train) -> None:
    run = train("papo", *LENGTH_PAYING)
    before, after = run.accuracies
    assert after > before + 0.15
    assert run.summary(25)["truncated_ratio"] < 0.5
