"""When every right row outranks every wrong row of its group."""

from itertools import product
from math import inf

import numpy as np
import pytest

from papo.advantages import Papo, max_lambda_process, order_margin
from papo.rollouts import ScoredRollouts


@pytest.mark.parametrize(
    ("num_generations", "bound"),
    [(4, 1.732), (8, 1.058), (9, 0.979), (10, 0.912), (12, 0.820), (16, 0.692), (32, 0.474)],
)
def test_bounds_of_the_specification(num_generations: int, bound: float):
    """algorithms §2.8 gives them rounded down."""
    assert 0 <= max_lambda_process(num_generations) - bound < 0.001


def test_margin_at_eight_is_that_of_the_specification():
    assert order_margin(8, 1.0) == pytest.approx(0.119, abs=5e-4)
    assert order_margin(9, 1.0) < 0 < order_margin(9, 0.97)
    assert order_margin(2, 1.0) == max_lambda_process(2) == inf


def gap(correct: int, wrong: int, badly: int, weight: float, ddof: int) -> float:
    """Advantage of the worst right row minus that of a wrong one, from the estimator."""
    size = correct + wrong
    outcome = np.array([1.0] * correct + [0.0] * wrong)
    process = np.array([0.0] * badly + [1.0] * (correct - badly) + [0.0] * wrong)
    total = Papo(lambda_process=weight, std_ddof=ddof, advantage_eps=0.0)(
        ScoredRollouts(
            group=np.zeros(size, dtype=np.int64),
            outcome=outcome,
            correct=outcome == 1,
            process=process,
            lengths=np.ones(size, dtype=np.int64),
        )
    ).total
    return float(total[:correct].min() - total[correct:].max())


@pytest.mark.parametrize(("num_generations", "weight", "ddof"), list(product([4, 8, 12], [0.5, 1.0], [0, 1])))
def test_margin_is_the_worst_over_all_binary_groups(num_generations: int, weight: float, ddof: int):
    gaps = [
        gap(correct, num_generations - correct, badly, weight, ddof)
        for correct in range(2, num_generations)
        for badly in range(1, correct)
    ]
    assert order_margin(num_generations, weight, std_ddof=ddof) == pytest.approx(min(gaps), abs=1e-9)
    assert order_margin(
        num_generations, max_lambda_process(num_generations, std_ddof=ddof), std_ddof=ddof
    ) == pytest.approx(0.0, abs=1e-9)
