"""When PAPO's advantage keeps every correct row above every wrong row of its group (derived here, not in the paper)."""

from math import inf, sqrt


def order_margin(num_generations: int, lambda_process: float, *, std_ddof: int = 1) -> float:
    """How far the worst-scored correct row stays above a wrong row of its group, at worst over all group make-ups.

        min over k = 2..G−1 of   √(G(G−1) / (k(G−k))) − λ·(k−1)/√k                      (sample std; eps ignored)

    for binary outcome rewards; not positive = a correct row can rank below a wrong one. inf if no group can mix.
    """
    gaps = [_outcome_gap(num_generations, k, std_ddof) for k in range(2, num_generations)]
    worst = [_worst_process(k, std_ddof) for k in range(2, num_generations)]
    return min((gap - lambda_process * low for gap, low in zip(gaps, worst, strict=True)), default=inf)


def max_lambda_process(num_generations: int, *, std_ddof: int = 1) -> float:
    """λ_max(G): every correct row outranks every wrong row of its group iff lambda_process is strictly below it."""
    sizes = range(2, num_generations)
    return min((_outcome_gap(num_generations, k, std_ddof) / _worst_process(k, std_ddof) for k in sizes), default=inf)


def _outcome_gap(num_generations: int, correct: int, ddof: int) -> float:
    """A_out of a right row minus that of a wrong one, in a group with `correct` right rows."""
    wrong = num_generations - correct
    return sqrt(num_generations * (num_generations - ddof) / (correct * wrong))


def _worst_process(correct: int, ddof: int) -> float:
    """−A_proc of the one badly scored row among `correct` right ones, the others scored alike."""
    return (correct - 1) * sqrt((correct - ddof) / (correct * (correct - 1)))
