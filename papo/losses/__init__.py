"""Policy losses: frozen values from per-token inputs to per-token losses, and what turns those into one scalar.

The union is the list of those that exist; `kind` tells them apart in a run config. Importing this package brings in
no torch: tensors come with the caller.
"""

from papo.losses.aggregation import EmptyRows, LossAggMode, row_weights
from papo.losses.clip import Vanilla
from papo.losses.inputs import LossInputs, TokenLosses
from papo.losses.kl import KlType, token_kl
from papo.losses.logprobs import chosen_logprobs, token_entropies, token_logprobs
from papo.losses.objective import Objective, merge_sums, policy_objective

PolicyLoss = Vanilla
"""A union as soon as there is a second (GSPO, GSPO-token and CISPO take the same inputs)."""

__all__ = [
    "EmptyRows",
    "KlType",
    "LossAggMode",
    "LossInputs",
    "Objective",
    "PolicyLoss",
    "TokenLosses",
    "Vanilla",
    "chosen_logprobs",
    "merge_sums",
    "policy_objective",
    "row_weights",
    "token_entropies",
    "token_kl",
    "token_logprobs",
]
