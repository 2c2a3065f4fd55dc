"""Training an implicit PRM: losses on β·Σ_t log π_φ/π_ref of whole completions (arXiv:2412.01981, 2502.01456).

All give one loss a row, for the caller to weigh: a mean over the batch, whatever its micro-batches.
"""

from typing import TYPE_CHECKING, Any, Literal

from jaxtyping import Bool, Int

from papo.losses.ratio import masked_difference
from papo.losses.tensors import Rows, TokenMask, Tokens
from papo.values import value

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

RowMask = Bool[Tensor, " rollouts"]
RowGroups = Int[Tensor, " rollouts"]
BonWeight = Literal["none", "bon_rm", "bon_acc"]


@value
class ImplicitPrm:
    """How PRIME's implicit PRM turns log-ratios into token rewards, and when it is trained on them.

    It is trained by cross-entropy of σ(β·Σ_t log π_φ/π_ref) with the outcome (`ce_losses`), on the same rollouts.
    """

    beta_train: float = 0.05
    """β, of the rewards and of the loss."""
    prime_forward: Literal["single", "double"] = "single"
    """single: rewards of the PRM as it was before it is trained on these rollouts (paper's default, verl's
    `update=after`); double: of the trained one, at the cost of a second pass (verl's `update=before`)."""
    prime_reference: Literal["initial", "policy"] = "initial"
    """π_ref of the log-ratio: the first policy, frozen; or the policy before the update, which saves a model (PRIME,
    appendix B.1)."""
    prime_granularity: Literal["token", "whole"] = "token"
    """Reward of each token, or their sum on the last one."""
    prime_norm: Literal["none", "batch_norm"] = "none"
    """batch_norm: divide by the batch's largest |return| (verl's recipe)."""
    prime_last_token: Literal["keep", "zero"] = "keep"
    """zero: the last token gets no process reward (verl's recipe)."""

    def __post_init__(self) -> None:
        if not self.beta_train > 0:
            raise ValueError(f"beta_train is {self.beta_train}: the log-ratio is multiplied by it, so use above 0.")


def completion_rewards(logprobs: Tokens, ref_logprobs: Tokens, mask: TokenMask, *, beta: float = 0.05) -> Rows:
    """r_φ(y) = β·Σ_t (log π_φ − log π_ref) over the training tokens, with gradient."""
    return beta * masked_difference(logprobs, ref_logprobs, mask).sum(-1)


def ce_losses(rewards: Rows, labels: Rows) -> Rows:
    """−[l·log σ(r) + (1 − l)·log(1 − σ(r))], from the logit r: a large one keeps its gradient. l may be soft."""
    return _softplus(rewards) - labels * rewards


def detached_dpo_losses(rewards: Rows, labels: Rows, group: RowGroups, *, weight: BonWeight = "none") -> Rows:
    """−log σ(±(r_i − mean of the r of the group's rows on the other side, detached)), + for right rows (PRIME's code).

    A right row (label above 0, as labels may be soft) is compared with those of lower labels, a wrong one with those
    of higher; a row without any with 0. `bon_rm` and `bon_acc` weigh each row by n·(share of its group with r ≤ its
    own, or label ≤ its own)^(n − 1), how likely it is the best of n. PRIME's code sums those over the batch, where it
    takes the mean of `none`.
    """
    same = group[:, None] == group[None, :]
    right = labels > 0
    below, above = labels[None, :] < labels[:, None], labels[None, :] > labels[:, None]
    other = same & below.where(right[:, None], above)
    fixed = rewards.detach()
    means = (other * fixed[None, :]).sum(-1) / other.sum(-1).clamp(min=1)
    losses = _softplus(-(rewards - means).where(right, means - rewards))
    if weight == "none":
        return losses
    scores = fixed if weight == "bon_rm" else labels
    size = same.sum(-1)
    share = (same & (scores[None, :] <= scores[:, None])).sum(-1) / size
    return losses * size * share ** (size - 1)


def dpo_losses(chosen: Rows, rejected: Rows) -> Rows:
    """−log σ(r_w − r_l) of each pair of a right and a wrong completion (arXiv:2305.18290)."""
    return _softplus(rejected - chosen)


def nca_losses(chosen: Rows, rejected: Rows) -> Rows:
    """−log σ(r_w) − ½ log σ(−r_w) − ½ log σ(−r_l): noise contrastive alignment (arXiv:2402.05369; TRL's nca_pair)."""
    return _softplus(-chosen) + 0.5 * _softplus(chosen) + 0.5 * _softplus(rejected)


def kto_losses(
    rewards: Rows, labels: Rows, *, baseline: float, weight_right: float = 1.0, weight_wrong: float = 1.0
) -> Rows:
    """λ_D·(1 − σ(r − z0)) for right rows, λ_U·(1 − σ(z0 − r)) for wrong ones (arXiv:2402.01306).

    z0 = `baseline` = β·max(0, KL estimated on mismatched prompts and completions), detached.
    """
    right = labels > 0.5
    return (weight_right * (baseline - rewards).sigmoid()).where(right, weight_wrong * (rewards - baseline).sigmoid())


def dpo_accuracy(rewards: Rows, labels: Rows, group: RowGroups) -> float:
    """Share of pairs within groups whose rewards are in the order of their labels, weighted by how far those differ.

    0.5 where no two labels of a group differ; ties of the rewards count as wrong.
    """
    later = group[:, None] == group[None, :]
    gap = labels[:, None] - labels[None, :]
    pairs = later & (gap > 0)
    if not pairs.any():
        return 0.5
    ordered = rewards[:, None] > rewards[None, :]
    return float((gap * (pairs & ordered)).sum() / (gap * pairs).sum())


def absolute_accuracy(rewards: Rows, labels: Rows) -> float:
    """Share of rows whose reward is above 0 just if the row is right."""
    return float(((rewards > 0) == (labels > 0.5)).double().mean())


def _softplus(rows: Rows) -> Rows:
    """log(1 + e^x) = −log σ(−x), without overflow."""
    return rows.logaddexp(rows.new_zeros(()))
