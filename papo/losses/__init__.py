"""Policy losses: frozen values from per-token inputs to per-token losses, and what turns those into one scalar.

The union is the list of those that exist; `kind` tells them apart in a run config. Importing this package brings in
no torch: tensors come with the caller.
"""

from papo.losses.aggregation import EmptyRows, LossAggMode, row_weights
from papo.losses.cispo import Cispo
from papo.losses.clip import Vanilla
from papo.losses.correction import Corrections, RolloutCorrection, batch_normalized, corrections, effective_sample_size
from papo.losses.full_kl import full_kl, within_kl_band
from papo.losses.gspo import Gspo, GspoToken
from papo.losses.implicit_prm import ImplicitPrm
from papo.losses.inputs import LossInputs, TokenLosses
from papo.losses.kl import KlLevel, KlType, token_kl
from papo.losses.kl_control import AdaptiveKl, FixedKl, KlController
from papo.losses.logprobs import chosen_logprobs, token_entropies, token_logprobs
from papo.losses.objective import Objective, merge_sums, policy_objective
from papo.losses.value import ValueObjective, explained_variance, value_objective

PolicyLoss = Vanilla | Gspo | GspoToken | Cispo

__all__ = [
    "AdaptiveKl",
    "Cispo",
    "Corrections",
    "EmptyRows",
    "FixedKl",
    "Gspo",
    "GspoToken",
    "ImplicitPrm",
    "KlController",
    "KlLevel",
    "KlType",
    "LossAggMode",
    "LossInputs",
    "Objective",
    "PolicyLoss",
    "RolloutCorrection",
    "TokenLosses",
    "ValueObjective",
    "Vanilla",
    "batch_normalized",
    "chosen_logprobs",
    "corrections",
    "effective_sample_size",
    "explained_variance",
    "full_kl",
    "merge_sums",
    "policy_objective",
    "row_weights",
    "token_entropies",
    "token_kl",
    "token_logprobs",
    "value_objective",
    "within_kl_band",
]
