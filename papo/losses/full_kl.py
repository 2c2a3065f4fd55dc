"""The KL divergence over the whole vocabulary: exact where the sampled estimators only estimate, at a logits' cost."""

from typing import TYPE_CHECKING, Any

from jaxtyping import Bool, Float

from papo.losses.tensors import TokenMask, Tokens

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

Logits = Float[Tensor, "rollouts tokens vocabulary"]


def full_kl(logits: Logits, ref_logits: Logits, *, temperature: float) -> Tokens:
    """KL(policy‖reference) = Σ_v p·(log p − log q) at each position, in nats, both at the sampling temperature.

    A token of policy probability 0 adds nothing, whatever the reference says. In float32, or float64 if they are.
    """
    policy, reference = _log_softmax(logits, temperature), _log_softmax(ref_logits, temperature)
    probabilities = policy.exp()
    return (probabilities * (policy - reference)).masked_fill(probabilities == 0, 0.0).sum(-1)


def within_kl_band(kl: Tokens, mask: TokenMask, *, low: float, high: float) -> Bool[Tensor, " rollouts"]:
    """Rows whose mean KL over their training tokens is within [low, high]; rows without tokens are.

    The others are to leave the loss and its divisor, so this comes before `row_weights`.
    """
    means = kl.masked_fill(~mask, 0.0).sum(-1) / mask.sum(-1).clamp(min=1)
    return ((means >= low) & (means <= high)) | ~mask.any(-1)


def _log_softmax(logits: Logits, temperature: float) -> Logits:
    precise = logits if logits.element_size() == 8 else logits.float()
    return (precise / temperature).log_softmax(-1)
