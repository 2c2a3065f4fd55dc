"""PAPO's Fullnorm ablation: the process score normalised over the whole group, wrong rows at 0 (arXiv:2603.26535)."""

from typing import ClassVar, Literal

import numpy as np

from papo.advantages.normalize import check_normalizer, comparable, group_normalize
from papo.advantages.papo import check_weight
from papo.needs import Needs
from papo.rollouts import AdvantageTerms, ScoredRollouts
from papo.values import value


@value
class PapoFullnorm:
    """A = A_out + λ·z over the group of r_proc, with r_proc = 0 on wrong rows: correctness leaks into the process part.

    The control that shows why PAPO compares right rows with right rows only.
    """

    kind: Literal["papo_fullnorm"] = "papo_fullnorm"
    lambda_process: float = 1.0
    """λ, the weight of the process advantage; the authors' ablation used 0.6."""
    std_ddof: int = 1
    """1 = sample standard deviation, 0 = population."""
    advantage_eps: float = 1e-6
    """Added to the standard deviation."""
    prm_on: Literal["correct", "all"] = "correct"
    """Rows that the process scorer is asked about; the score of a wrong row is 0 whatever it says."""
    token_level: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_normalizer(std_ddof=self.std_ddof, advantage_eps=self.advantage_eps)
        check_weight(lambda_process=self.lambda_process)

    @property
    def needs(self) -> Needs:
        return Needs(process_scores=True)

    def __call__(self, rollouts: ScoredRollouts) -> AdvantageTerms:
        """Per-row terms. A right row whose process score is missing is left out of the process part."""
        scores = np.where(rollouts.correct, rollouts.process, 0.0)
        kept = rollouts.scorable
        process = group_normalize(scores, rollouts.group, where=kept, ddof=self.std_ddof, eps=self.advantage_eps)
        return AdvantageTerms(
            outcome=group_normalize(rollouts.outcome, rollouts.group, ddof=self.std_ddof, eps=self.advantage_eps),
            process=self.lambda_process * process + 0.0,
            process_active=comparable(scores, rollouts.group, where=kept),
        )
