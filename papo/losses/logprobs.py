"""Log-probs and entropies of the policy from its logits, in float32 (float64 if the logits are).

Policy, old policy and reference all go through here, at the temperature that the rollouts were sampled with;
otherwise the ratio of an unchanged policy is not 1.
"""

from typing import TYPE_CHECKING, Any

from jaxtyping import Float, Int

from papo.losses.tensors import Tokens

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

Logits = Float[Tensor, "rollouts tokens vocabulary"]
TokenIds = Int[Tensor, "rollouts tokens"]


def token_logprobs(logits: Logits, token_ids: TokenIds, *, temperature: float) -> Tokens:
    """log softmax(logits / temperature) at the given ids.

    As chosen logit − logsumexp: no tensor of the size of the logits is kept beside them (log_softmax keeps one),
    except the upcast of low-precision logits and the scaled copy of temperatures other than 1, made row by row.
    """
    chosen = logits.gather(-1, token_ids[..., None].long())[..., 0]
    return _scaled(chosen, temperature) - _logsumexp(logits, temperature)


def chosen_logprobs(
    logits: Float[Tensor, "rollouts positions vocabulary"],
    input_ids: Int[Tensor, "rollouts positions"],
    *,
    completion_width: int,
    temperature: float,
) -> Tokens:
    """Log-probs of the last `completion_width` ids of each row: [:, t] is that of completion token t.

    A causal model's logits at position p are for the token at p + 1, so they are read one position earlier.
    """
    positions = input_ids.shape[1]
    if not 0 <= completion_width < positions:
        raise ValueError(
            f"completion_width is {completion_width} but the rows have {positions} positions:"
            " at least one prompt token must stand before the completion."
        )
    start = positions - completion_width
    return token_logprobs(logits[:, start - 1 : -1], input_ids[:, start:], temperature=temperature)


def token_entropies(logits: Logits, *, temperature: float) -> Tokens:
    """−Σ p log p of softmax(logits / temperature), in nats."""
    scaled = _scaled(logits, temperature)
    return scaled.logsumexp(-1) - (scaled.softmax(-1) * scaled).sum(-1)


def _logsumexp(logits: Logits, temperature: float) -> Tokens:
    """Row by row where a copy is needed, so that only one row's copy is alive at a time without a gradient."""
    import torch  # noqa: PLC0415  # torch has no method that stacks; whoever calls with tensors has it loaded

    needs_copy = temperature != 1.0 or logits.dtype not in (torch.float32, torch.float64)
    if not needs_copy or logits.shape[0] == 0:
        return _scaled(logits, temperature).logsumexp(-1)
    return torch.stack([_scaled(row, temperature).logsumexp(-1) for row in logits])


def _scaled(logits: Float[Tensor, "..."], temperature: float) -> Float[Tensor, "..."]:
    precise = logits if logits.element_size() == 8 else logits.float()
    return precise if temperature == 1.0 else precise / temperature
