"""Algorithms as their papers and codes set them, each with what belongs to it beside the update.

A preset is for a reader who wants to know what a name stands for: sizes and learning rates that train a given model
are a run config's. Source of each: see its `source`.
"""

from papo.advantages import DrGrpo, FilterAccuracy, FilterGroups, Gae, Grpo, Papo, Prime, Prpo, RisingLambda, Rloo
from papo.algorithm import Algorithm
from papo.losses import Gspo, ImplicitPrm, Vanilla
from papo.values import value

_CLIP_HIGHER = Vanilla(clip_ratio_low=0.2, clip_ratio_high=0.28)


@value
class Preset:
    """An algorithm and the settings of sampling and rewards that its source trains it with."""

    algorithm: Algorithm
    """What the update optimises."""
    source: str
    """Paper and code."""
    num_generations: int
    """G, completions a prompt."""
    correct_reward: float = 1.0
    """Outcome reward of a right completion."""
    wrong_reward: float = 0.0
    """Outcome reward of a wrong completion."""
    format_reward_weight: float = 0.0
    """Weight of the format reward."""
    overlong_buffer_len: int | None = None
    """Tokens before the limit over which the reward falls by 1; null: none."""
    filter_groups: FilterGroups | None = None
    """Dynamic sampling; null: none."""
    filter_accuracy: FilterAccuracy | None = None
    """PRIME's filter of prompts; null: none."""


papo_paper = Preset(
    algorithm=Algorithm(advantage=Papo(), loss_agg_mode="seq-mean-token-mean", ppo_mini_batch_size=256),
    source="PAPO, arXiv:2603.26535 §4 and table 3: λ = 1, clip 0.2, mean over responses (eq. 1), no KL, 4 updates",
    num_generations=8,
)
papo_authors_code = Preset(
    algorithm=Algorithm(advantage=Papo(), policy_loss=_CLIP_HIGHER, ppo_mini_batch_size=256),
    source="tanzelin430/PAPO @277dac1: clip 0.2/0.28 and token-mean in every script, 4 updates of 32 prompts × 8",
    num_generations=8,
)
papo_staged = Preset(
    algorithm=Algorithm(
        advantage=Papo(lambda_process=0.5, lambda_process_schedule=RisingLambda(start=0.1, iterations=200)),
        policy_loss=_CLIP_HIGHER,
        ppo_mini_batch_size=256,
    ),
    source="this project: α = 1 and λ from 0.1 to 0.5, so that outcome leads first; no paper",
    num_generations=8,
)
grpo_deepseekmath = Preset(
    algorithm=Algorithm(
        advantage=Grpo(), loss_agg_mode="seq-mean-token-mean", use_kl_loss=True, kl_loss_coef=0.04, kl_loss_type="k3"
    ),
    source="DeepSeekMath, arXiv:2402.03300 §4: G = 64, one update a batch, KL 0.04 in the loss",
    num_generations=64,
)
dr_grpo = Preset(
    algorithm=Algorithm(advantage=DrGrpo(), loss_agg_mode="seq-mean-token-sum-norm", loss_norm_constant=3000),
    source="Dr. GRPO, arXiv:2503.20783: no std, a constant divisor (its longest completion: 3000), no KL",
    num_generations=8,
)
dapo = Preset(
    algorithm=Algorithm(advantage=Grpo(), policy_loss=_CLIP_HIGHER, ppo_mini_batch_size=512),
    source="DAPO, arXiv:2503.14476: ±1 rewards, clip 0.2/0.28, token-mean, overlong buffer 4096, 16 updates, no KL",
    num_generations=16,
    wrong_reward=-1.0,
    overlong_buffer_len=4096,
    filter_groups=FilterGroups(metric="acc"),
)
gspo = Preset(
    algorithm=Algorithm(
        advantage=Grpo(), policy_loss=Gspo(), loss_agg_mode="seq-mean-token-mean", ppo_mini_batch_size=256
    ),
    source="GSPO, arXiv:2507.18071: clip 3e-4/4e-4 on the sequence's mean ratio, 4 mini-batches, no KL",
    num_generations=8,
)
prime = Preset(
    algorithm=Algorithm(advantage=Prime(), ppo_mini_batch_size=256),
    source="PRIME, arXiv:2502.01456 §3: leave-one-out, γ = 1, β = 0.05, K = 4, accuracy filter 0.2 to 0.8, no KL",
    num_generations=4,
    filter_accuracy=FilterAccuracy(),
)
prime_authors_code = Preset(
    algorithm=Algorithm(
        advantage=Prime(prime_impl="verl", reward_dpo_coef=5.0, reward_gt_coef=5.0, whiten_count_eps=1e-8),
        implicit_prm=ImplicitPrm(prime_forward="double", prime_norm="batch_norm", prime_last_token="zero"),
        use_kl_loss=True,
        kl_loss_coef=0.001,
        ppo_mini_batch_size=256,
    ),
    source="verl-recipe 48ea0a7, prime: K/(K−1) scaling, coefficients 5/5, whitened, KL 0.001",
    num_generations=4,
    filter_accuracy=FilterAccuracy(),
)
prpo = Preset(
    algorithm=Algorithm(
        advantage=Prpo(), loss_agg_mode="seq-mean-token-mean", use_kl_loss=True, kl_loss_coef=0.001, kl_loss_type="k3"
    ),
    source="PRPO, arXiv:2601.07182; SchumiDing/srpocode @662bbc6 (srpo2): prior 0.5 and √(1/24), ±1 rewards, k3 0.001",
    num_generations=8,
    wrong_reward=-1.0,
)
rloo = Preset(
    algorithm=Algorithm(
        advantage=Rloo(),
        policy_loss=Vanilla(importance_sampling_level="sequence", sequence_ratio_norm="sum"),
        loss_agg_mode="seq-mean-token-mean",
        use_kl_in_reward=True,
        kl_coef=0.05,
    ),
    source="RLOO, arXiv:2402.14740; TRL RLOOConfig: k1 0.05 in the reward, the completion as one action",
    num_generations=2,
)
ppo = Preset(
    algorithm=Algorithm(advantage=Gae(), use_kl_in_reward=True, kl_coef=0.05, ppo_epochs=4),
    source="Tülu 3 RLVR, arXiv:2411.15124 §6 (8B): γ 1, λ 0.95, 4 epochs, clip 0.2, k1 0.05 in the reward, reward 10",
    num_generations=1,
    correct_reward=10.0,
)
rlvr = Preset(
    algorithm=Algorithm(advantage=Grpo()),
    source="the RLVR recipe of the project's brief: G = 16, 1/0 for the answer plus 0.1 for the format",
    num_generations=16,
    format_reward_weight=0.1,
)
r1_zero = Preset(
    algorithm=Algorithm(
        advantage=Grpo(),
        loss_agg_mode="seq-mean-token-mean",
        use_kl_loss=True,
        kl_loss_coef=0.001,
        kl_loss_type="k3",
        ref_update_interval=400,
    ),
    source="DeepSeek-R1-Zero, arXiv:2501.12948: G = 16, accuracy and format alike, KL 0.001, reference every 400 steps",
    num_generations=16,
    format_reward_weight=1.0,
)

PRESETS: dict[str, Preset] = {
    "papo_paper": papo_paper,
    "papo_authors_code": papo_authors_code,
    "papo_staged": papo_staged,
    "grpo_deepseekmath": grpo_deepseekmath,
    "dr_grpo": dr_grpo,
    "dapo": dapo,
    "gspo": gspo,
    "prime": prime,
    "prime_authors_code": prime_authors_code,
    "prpo": prpo,
    "rloo": rloo,
    "ppo": ppo,
    "rlvr": rlvr,
    "r1_zero": r1_zero,
}
"""By name."""
