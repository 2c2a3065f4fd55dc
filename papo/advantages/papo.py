"""PAPO: decoupled advantage normalisation (arXiv:2603.26535 §4)."""

from math import inf
from typing import ClassVar, Literal

import numpy as np

from papo.advantages.normalize import check_normalizer, comparable, group_normalize, rank_normalize
from papo.advantages.schedules import RisingLambda
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, Mask, ScoredRollouts, Values
from papo.values import value


@value
class Papo:
    """A = α·A_out + λ·A_proc: outcome z-scored over the group, process score over the group's correct rows only.

        A_out,i  = z of r_out over all rows of the group                                                (eq. 3)
        A_proc,i = z of r_proc over C = the correct rows, for i in C and |C| ≥ min_correct, else 0      (eq. 4)

    Wrong rows never depend on a process score, so a scorer cannot be hacked through wrong answers.
    """

    kind: Literal["papo"] = "papo"
    lambda_process: float = 1.0
    """λ, the weight of the process advantage; 0 is GRPO."""
    lambda_process_schedule: RisingLambda | None = None
    """How λ rises to lambda_process over the iterations; null: it is lambda_process from the start (the paper)."""
    outcome_weight: float = 1.0
    """α, the weight of the outcome advantage (the paper: 1)."""
    std_ddof: int = 1
    """1 = sample standard deviation (the authors' code), 0 = population."""
    advantage_eps: float = 1e-6
    """Added to the standard deviation."""
    scale_rewards: Literal["group", "none"] = "group"
    """What divides both centred parts: the standard deviation, or nothing (norm_adv_by_std_in_grpo: false)."""
    normalization: Literal["zscore", "rank"] = "zscore"
    """What is normalised in both parts: the rewards, or their ranks in the group, where only the order counts."""
    min_correct: int = 2
    """A_proc is 0 in groups with fewer correct and scored rows."""
    few_correct: Literal["zero", "scale"] = "zero"
    """scale: a group's λ is also multiplied by |C|/G, so that few correct rows weigh little; zero: only min_correct."""
    order_guard: Literal["none", "clip"] = "none"
    """clip: a correct row's advantage is at least that of its group's best wrong row plus order_guard_margin."""
    order_guard_margin: float = 0.01
    """How far above the best wrong row the guard keeps the correct ones."""
    prm_on: Literal["correct", "all"] = "correct"
    """Rows that the process scorer is asked about; `all` is for logging and changes no advantage."""
    token_level: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_normalizer(std_ddof=self.std_ddof, advantage_eps=self.advantage_eps)
        check_weight(lambda_process=self.lambda_process, outcome_weight=self.outcome_weight)
        if self.min_correct < 2:
            raise ValueError(f"min_correct is {self.min_correct}: a score is compared with others, so use 2 or more.")
        if not 0 < self.order_guard_margin < inf:
            raise ValueError(f"order_guard_margin is {self.order_guard_margin}: use a small positive number.")

    @property
    def needs(self) -> Needs:
        return Needs(process_scores=True, iteration=self.lambda_process_schedule is not None)

    def lambda_at(self, iteration: int) -> float:
        """λ in an iteration, counted from 0."""
        schedule = self.lambda_process_schedule
        return self.lambda_process if schedule is None else schedule.at(iteration, final=self.lambda_process)

    @property
    def lambda_highest(self) -> float:
        """The largest λ of the run, in units of α: what the ordering of right and wrong rows depends on."""
        starts = [] if self.lambda_process_schedule is None else [self.lambda_process_schedule.start]
        highest = max([self.lambda_process, *starts])
        return highest / self.outcome_weight if self.outcome_weight > 0 else (inf if highest > 0 else 0.0)

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Per-row terms. A correct row whose process score is missing leaves C and has A_proc = 0."""
        chosen = rollouts.correct & rollouts.scorable
        active = comparable(rollouts.process, rollouts.group, where=chosen, at_least=self.min_correct)
        weights = self.lambda_at(rollouts.iteration) * self._shares(rollouts, chosen)
        # + 0.0 turns the −0.0 of a weight 0 into 0.0, so that λ = 0 is GRPO to the bit
        outcome = self.outcome_weight * self._normalized(rollouts.outcome, rollouts) + 0.0
        process = weights * self._normalized(rollouts.process, rollouts, where=active) + 0.0
        if self.order_guard == "clip":
            process = self._guarded(outcome, process, rollouts)
        return AdvantageTerms(outcome=outcome, process=process, process_active=active)

    def _normalized(self, values: Values, rollouts: ScoredRollouts, *, where: Mask | None = None) -> Values:
        if self.normalization == "rank":
            return rank_normalize(values, rollouts.group, where=where, ddof=self.std_ddof, scale=self.scale_rewards)
        return group_normalize(
            values, rollouts.group, where=where, ddof=self.std_ddof, eps=self.advantage_eps, scale=self.scale_rewards
        )

    def _shares(self, rollouts: ScoredRollouts, chosen: Mask) -> Values:
        """What multiplies λ in each row's group: 1, or |C|/G among the rows that have a reward."""
        shares = np.ones(len(chosen))
        if self.few_correct == "scale":
            for group in np.unique(rollouts.group):
                members = rollouts.group == group
                of_group = int((members & rollouts.scorable).sum())
                shares[members] = int((members & chosen & ~np.isnan(rollouts.process)).sum()) / max(1, of_group)
        return shares

    def _guarded(self, outcome: Values, process: Values, rollouts: ScoredRollouts) -> Values:
        """The process part, raised where the total of a right row is not above every wrong row of its group.

        Groups of equal rewards are left alone: there is no order of outcomes to guard.
        """
        guarded = process.copy()
        for group in np.unique(rollouts.group):
            members = (rollouts.group == group) & rollouts.scorable
            right, wrong = members & rollouts.correct, members & ~rollouts.correct
            if right.any() and wrong.any() and outcome[members].any():
                floor = (outcome[wrong] + process[wrong]).max() + self.order_guard_margin
                guarded[right] = np.maximum(process[right], floor - outcome[right])
        return guarded


def check_weight(**weights: float) -> None:
    """Raise ValueError unless each weight is finite and not negative."""
    for name, weight in weights.items():
        if not 0 <= weight < inf:
            raise ValueError(f"{name} is {weight}: use 0 (that part off) or a positive weight.")
