"""Advantage estimators: one frozen value a method, each a function from scored rollouts to advantage terms.

The union is the list of those that exist; `kind` tells them apart in a run config.
"""

from papo.advantages.grpo import Grpo
from papo.advantages.normalize import group_normalize
from papo.advantages.papo import Papo, max_lambda_process, order_margin
from papo.advantages.prm import Prm
from papo.advantages.reasons import zero_reason
from papo.advantages.sum import Sum

Advantage = Grpo | Papo | Sum | Prm

__all__ = [
    "Advantage",
    "Grpo",
    "Papo",
    "Prm",
    "Sum",
    "group_normalize",
    "max_lambda_process",
    "order_margin",
    "zero_reason",
]
