"""Advantage estimators: one frozen value a method, each a function from scored rollouts to advantage terms.

The union is the list of those that exist; `kind` tells them apart in a run config.
"""

from papo.advantages.dr_grpo import DrGrpo
from papo.advantages.filters import FilterAccuracy, FilterGroups
from papo.advantages.gae import Gae
from papo.advantages.grpo import Grpo
from papo.advantages.grpo_process import GrpoProcess
from papo.advantages.implicit_rewards import implicit_token_rewards, prime_normalized, step_rewards
from papo.advantages.kl_reward import KlPenalty, kl_rewards
from papo.advantages.mult import Mult
from papo.advantages.multi_reward import MultiReward
from papo.advantages.normalize import group_normalize, leave_one_out, rank_normalize
from papo.advantages.order import max_lambda_process, order_margin
from papo.advantages.papo import Papo
from papo.advantages.papo_fullnorm import PapoFullnorm
from papo.advantages.prime import Prime
from papo.advantages.prm import Prm
from papo.advantages.prpo import Prpo
from papo.advantages.reasons import zero_reason
from papo.advantages.reinforce_plus_plus import ReinforcePlusPlus, ReinforcePlusPlusBaseline
from papo.advantages.rloo import Rloo
from papo.advantages.schedules import RisingLambda
from papo.advantages.sum import Sum

Advantage = (
    Gae
    | Grpo
    | GrpoProcess
    | DrGrpo
    | Rloo
    | ReinforcePlusPlus
    | ReinforcePlusPlusBaseline
    | Papo
    | PapoFullnorm
    | Prpo
    | Prime
    | MultiReward
    | Sum
    | Mult
    | Prm
)

__all__ = [
    "Advantage",
    "DrGrpo",
    "FilterAccuracy",
    "FilterGroups",
    "Gae",
    "Grpo",
    "GrpoProcess",
    "KlPenalty",
    "Mult",
    "MultiReward",
    "Papo",
    "PapoFullnorm",
    "Prime",
    "Prm",
    "Prpo",
    "ReinforcePlusPlus",
    "ReinforcePlusPlusBaseline",
    "RisingLambda",
    "Rloo",
    "Sum",
    "group_normalize",
    "implicit_token_rewards",
    "kl_rewards",
    "leave_one_out",
    "max_lambda_process",
    "order_margin",
    "prime_normalized",
    "rank_normalize",
    "step_rewards",
    "zero_reason",
]
