"""Settings of an algorithm that are legal but hardly meant together."""

from typing import TYPE_CHECKING, Any

from papo.losses import Cispo, Gspo, GspoToken, Vanilla

if TYPE_CHECKING:
    from papo.algorithm import Algorithm
else:
    Algorithm = Any  # papo.algorithm asks this module, so it comes after it

SMALL_CLIP, LARGE_CLIP = 0.01, 0.05
"""Bounds below the first are for mean log-ratios, bounds above the second for a token's or a sum's."""


def cautions(algorithm: Algorithm) -> list[str]:
    """One sentence each, beginning with the field."""
    return [*_clip_cautions(algorithm), *_idle_cautions(algorithm), *_other_cautions(algorithm)]


def _clip_cautions(algorithm: Algorithm) -> list[str]:
    loss = algorithm.policy_loss
    by_sequence = isinstance(loss, Gspo | GspoToken) or (
        isinstance(loss, Vanilla) and loss.importance_sampling_level == "sequence"
    )
    if isinstance(loss, Cispo) or not by_sequence:
        return []
    widest = max(loss.clip_ratio_low, loss.clip_ratio_high)
    if loss.sequence_ratio_norm == "mean" and widest >= LARGE_CLIP:
        return [
            f"policy_loss.clip_ratio_high is {loss.clip_ratio_high}: the mean log-ratio of a sequence hardly leaves"
            " such a range, so that nothing is clipped. GSPO uses 3e-4 and 4e-4."
        ]
    if loss.sequence_ratio_norm == "sum" and widest < SMALL_CLIP:
        return [
            f"policy_loss.clip_ratio_high is {loss.clip_ratio_high} with sequence_ratio_norm sum: the ratio of a whole"
            " sequence leaves such a range at once. Use 0.2 or so, or sequence_ratio_norm: mean."
        ]
    return []


def _idle_cautions(algorithm: Algorithm) -> list[str]:
    one_step = algorithm.ppo_epochs == 1 and algorithm.ppo_mini_batch_size is None
    if one_step and isinstance(algorithm.policy_loss, Gspo | GspoToken | Cispo):
        return [
            f"policy_loss is {algorithm.policy_loss.kind}, but there is one optimizer step a batch: every ratio is 1"
            " and it is the plain policy gradient. Set ppo_epochs or ppo_mini_batch_size."
        ]
    return []


def _other_cautions(algorithm: Algorithm) -> list[str]:
    found: list[str] = []
    if algorithm.use_kl_loss and algorithm.kl_loss_type == "k1":
        found.append(
            "kl_loss_type is k1: as a loss its gradient is 0 in expectation. Use k2, k3 or k1+, or use_kl_in_reward."
        )
    if algorithm.use_kl_loss and algorithm.kl_loss_type == "k3_reversed":
        found.append("kl_loss_type is k3_reversed: its mean is χ² − KL and not a KL. Use k3.")
    if algorithm.advantage.kind == "dr_grpo" and algorithm.loss_agg_mode != "seq-mean-token-sum-norm":
        found.append(
            f"loss_agg_mode is {algorithm.loss_agg_mode}, but advantage dr_grpo is one half of Dr. GRPO: the other is"
            " loss_agg_mode seq-mean-token-sum-norm with the longest completion as loss_norm_constant."
        )
    if isinstance(algorithm.policy_loss, Gspo) and algorithm.loss_agg_mode != "seq-mean-token-mean":
        found.append(
            f"loss_agg_mode is {algorithm.loss_agg_mode}, but gspo is a mean over sequences: long ones weigh more."
            " Use seq-mean-token-mean."
        )
    return found
