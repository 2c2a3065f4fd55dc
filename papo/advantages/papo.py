"""PAPO: decoupled advantage normalisation (arXiv:2603.26535 §4), and when its ordering guarantee holds."""

from math import inf, sqrt
from typing import Literal

from papo.advantages.normalize import check_normalizer, comparable, group_normalize
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, ScoredRollouts
from papo.values import value


@value
class Papo:
    """A = A_out + λ·A_proc: outcome reward z-scored over the group, process score over the group's correct rows only.

        A_out,i  = z of r_out over all rows of the group                                                (eq. 3)
        A_proc,i = z of r_proc over C = the correct rows, for i in C and |C| ≥ min_correct, else 0      (eq. 4)

    Wrong rows never depend on a process score, so a scorer cannot be hacked through wrong answers.
    """

    kind: Literal["papo"] = "papo"
    lambda_process: float = 1.0
    """λ, the weight of the process advantage; 0 is GRPO."""
    std_ddof: int = 1
    """1 = sample standard deviation (the authors' code), 0 = population."""
    advantage_eps: float = 1e-6
    """Added to the standard deviation."""
    min_correct: int = 2
    """A_proc is 0 in groups with fewer correct and scored rows."""
    prm_on: Literal["correct", "all"] = "correct"
    """Rows that the process scorer is asked about; `all` is for logging and changes no advantage."""

    def __post_init__(self) -> None:
        check_normalizer(std_ddof=self.std_ddof, advantage_eps=self.advantage_eps)
        if not 0 <= self.lambda_process < inf:
            raise ValueError(f"lambda_process is {self.lambda_process}: use 0 (outcome only) or a positive weight.")
        if self.min_correct < 2:
            raise ValueError(f"min_correct is {self.min_correct}: a score is compared with others, so use 2 or more.")

    @property
    def needs(self) -> Needs:
        return Needs(process_scores=True)

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Per-row terms. A correct row whose process score is missing leaves C and has A_proc = 0."""
        chosen = rollouts.correct & rollouts.scorable
        active = comparable(rollouts.process, rollouts.group, where=chosen, at_least=self.min_correct)
        process = group_normalize(
            rollouts.process, rollouts.group, where=active, ddof=self.std_ddof, eps=self.advantage_eps
        )
        return AdvantageTerms(
            outcome=group_normalize(rollouts.outcome, rollouts.group, ddof=self.std_ddof, eps=self.advantage_eps),
            # + 0.0 turns the −0.0 of λ = 0 into 0.0, so that λ = 0 is GRPO to the bit
            process=self.lambda_process * process + 0.0,
            process_active=active,
        )


def order_margin(num_generations: int, lambda_process: float, *, std_ddof: int = 1) -> float:
    """How far the worst-scored correct row stays above a wrong row of its group, at worst over all group make-ups.

        min over k = 2..G−1 of   √(G(G−1) / (k(G−k))) − λ·(k−1)/√k                      (sample std; eps ignored)

    for binary outcome rewards; not positive = a correct row can rank below a wrong one. inf if no group can mix.
    Derived for this project, not in the paper.
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
