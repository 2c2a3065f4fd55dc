"""What a policy loss reads and returns. Every loss of the family gets the same inputs and fits the same outputs."""

from dataclasses import dataclass

from papo.losses.tensors import Rows, TokenMask, Tokens


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossInputs:
    """One micro-batch. Whatever stands where `completion_mask` is False is never read, NaN and inf included."""

    logprobs: Tokens
    """Log-probs of the policy that is trained, with gradient, at the sampling temperature."""
    old_logprobs: Tokens
    """The trainer's log-probs before the batch's first optimizer step, detached."""
    advantages: Tokens
    """Advantage of each token, detached."""
    completion_mask: TokenMask
    """True on tokens that train, the end token included."""
    row_weights: Rows
    """From `row_weights`: computed once from the whole optimisation batch, sliced for this micro-batch."""
    ref_logprobs: Tokens | None = None
    """Log-probs of the reference policy, detached; needed with a KL loss."""
    sampler_logprobs: Tokens | None = None
    """Log-probs that the sampler reported, detached; measured here, used by rollout correction."""
    correction_weights: Tokens | None = None
    """Weight of each token from `corrections` of the whole batch, detached; None: made here, of this micro-batch."""
    entropies: Tokens | None = None
    """Entropy of the current policy at each token, in nats, with gradient if it is rewarded."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenLosses:
    """The policy loss token by token. Sequence-level losses repeat the row's number on its tokens."""

    losses: Tokens
    """Loss of each token, 0 where masked."""
    ratio: Tokens
    """The importance ratio that the loss clips (the row's, for sequence-level losses), 1 where masked."""
    clipped: TokenMask
    """Tokens whose clipped term is active, so that they give no gradient."""
    clipped_lower: TokenMask
    """Tokens where the dual clip is active."""
