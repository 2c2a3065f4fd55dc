"""An algorithm is a value: a frozen composition of an advantage estimator, a policy loss, KL and aggregation.

The same value serves training, audit and the docs. A new method is a new estimator or loss in a union, or a new preset.
"""

from papo.advantages import Advantage, Grpo, KlPenalty, Papo
from papo.cautions import cautions
from papo.losses import (
    EmptyRows,
    FixedKl,
    ImplicitPrm,
    KlController,
    KlLevel,
    KlType,
    LossAggMode,
    PolicyLoss,
    RolloutCorrection,
    Vanilla,
)
from papo.needs import Needs
from papo.values import value


@value
class Algorithm:
    """What an update optimises. Raises ValueError on settings that contradict each other."""

    advantage: Advantage
    """How rewards become advantages."""
    policy_loss: PolicyLoss = Vanilla()
    """How advantages and log-probs become a loss a token."""
    loss_agg_mode: LossAggMode = "token-mean"
    """How token losses become one number; see `papo.losses.aggregation`."""
    loss_norm_constant: int | None = None
    """C of seq-mean-token-sum-norm: the longest completion allowed (Dr. GRPO, arXiv:2503.20783)."""
    empty_rows: EmptyRows = "exclude"
    """Whether rows without training tokens count in the row means: not (verl), or yes (TRL)."""
    use_kl_loss: bool = False
    """Add kl_loss_coef · KL(policy, reference) to the loss. PAPO, DAPO, Dr. GRPO and GSPO train without."""
    kl_loss_coef: float = 0.001
    """Weight of the KL term (DeepSeekMath: 0.04, R1: 0.001)."""
    kl_loss_type: KlType = "k3"
    """Estimator; see `papo.losses.kl` for which gradient each has."""
    kl_level: KlLevel = "token"
    """token: the estimate of each token; sequence: of the row's mean log-ratio, the same on each of its tokens."""
    kl_clamp: float | None = 20.0
    """Bound on the exponent of k3; None = no bound (TRL)."""
    kl_value_clamp: float | None = 10.0
    """Bound on the value of k3, without gradient beyond it (verl); None = no bound (TRL)."""
    use_bias_correction_kl: bool = False
    """Multiply the KL estimate by the importance ratio, gradient included: unbiased off-policy (DeepSeek-V3.2; TRL's
    default)."""
    kl_on_zero_advantage: bool = True
    """Whether rows whose advantage is 0 are still pulled to the reference."""
    kl_band: tuple[float, float] | None = None
    """Reject rows whose mean KL over the whole vocabulary is outside (low, high); null: none."""
    use_kl_in_reward: bool = False
    """Subtract kl_coef · KL(old policy, reference) from the reward of each token, before the advantages (PPO, RLOO)."""
    kl_coef: float = 0.05
    """Weight of the KL in the reward (TRL, Tülu 3: 0.05)."""
    kl_penalty: KlPenalty = "k1"
    """Its estimator: k1 is unbiased, and as it is a value its gradient does not matter."""
    kl_controller: KlController = FixedKl()
    """How the coefficient of the KL in use moves from iteration to iteration."""
    ref_update_interval: int | None = None
    """Iterations after which the reference becomes the policy (iterative GRPO; R1: 400 steps); null: never."""
    entropy_coeff: float = 0.0
    """Weight of the entropy bonus."""
    vf_coef: float = 0.1
    """Weight of the critic's loss (TRL: 0.1); matters with a critic only."""
    implicit_prm: ImplicitPrm = ImplicitPrm()
    """How an implicit PRM scores and is trained (PRIME); matters with one only."""
    cliprange_value: float | None = 0.2
    """How far the critic's values may move from the old ones within the loss (TRL: 0.2); null: not clipped."""
    ppo_epochs: int = 1
    """How often each rollout is used for an optimizer step."""
    ppo_mini_batch_size: int | None = None
    """Rollouts an optimizer step; None = the whole batch in one. The policy clip is idle with one step a batch."""
    log_ratio_clamp: float | None = 20.0
    """Bound on the exponent of the importance ratio (verl: 20); None = no bound (TRL)."""
    mask_truncated_completions: bool = False
    """Take completions that were cut off at the limit out of the loss and its divisor (DAPO's overlong filtering)."""
    rollout_correction: RolloutCorrection = RolloutCorrection()
    """What is done about a sampler whose probabilities are not the trainer's."""

    def __post_init__(self) -> None:
        if (self.loss_agg_mode == "seq-mean-token-sum-norm") != (self.loss_norm_constant is not None):
            raise ValueError(
                f"loss_agg_mode is {self.loss_agg_mode} and loss_norm_constant is {self.loss_norm_constant}:"
                " seq-mean-token-sum-norm needs the constant (the longest completion allowed), the other modes none."
            )
        self._check_numbers()
        self._check_kl()
        if getattr(self.policy_loss, "one_advantage_a_row", False) and self.advantage.token_level:
            raise ValueError(
                f"policy_loss is {self.policy_loss.kind}, which has one advantage a row, but {self.advantage.kind}"
                " tells tokens apart: use policy_loss gspo_token."
            )

    def _check_numbers(self) -> None:
        for name in ("loss_norm_constant", "ppo_epochs", "ppo_mini_batch_size", "ref_update_interval"):
            number: int | None = getattr(self, name)
            if number is not None and number < 1:
                raise ValueError(f"{name} is {number}: use 1 or more.")
        for name in ("kl_clamp", "kl_value_clamp", "log_ratio_clamp", "cliprange_value"):
            bound: float | None = getattr(self, name)
            if bound is not None and not bound > 0:
                raise ValueError(f"{name} is {bound}: use a positive bound, or null for none.")
        if self.kl_band is not None and not 0 <= self.kl_band[0] < self.kl_band[1]:
            raise ValueError(f"kl_band is {self.kl_band}: give (low, high) with 0 ≤ low < high, or null for none.")

    @property
    def first_kl_coef(self) -> float:
        """The coefficient that a controller starts from."""
        return self.kl_loss_coef if self.use_kl_loss else self.kl_coef

    @property
    def prm_reference(self) -> bool:
        """Whether the implicit PRM's reference is a model of its own."""
        return self.advantage.needs.implicit_prm and self.implicit_prm.prime_reference == "initial"

    def _check_kl(self) -> None:
        for switch, coef in (("use_kl_loss", "kl_loss_coef"), ("use_kl_in_reward", "kl_coef")):
            if getattr(self, switch) and not getattr(self, coef) > 0:
                raise ValueError(f"{switch} is on but {coef} is {getattr(self, coef)}: give it a positive weight.")
        if self.use_kl_loss and self.use_kl_in_reward:
            raise ValueError("use_kl_loss and use_kl_in_reward are both on: the KL counts once, so turn one off.")
        if self.use_kl_in_reward and not getattr(self.advantage, "takes_kl_in_reward", False):
            raise ValueError(
                f"use_kl_in_reward is on, but {self.advantage.kind} takes no KL in the reward: use use_kl_loss, or"
                " one of gae, rloo, reinforce_plus_plus and reinforce_plus_plus_baseline."
            )
        has_kl = self.use_kl_loss or self.use_kl_in_reward
        for name, idle in (("kl_controller", FixedKl()), ("ref_update_interval", None)):
            if getattr(self, name) != idle and not has_kl:
                raise ValueError(f"{name} is set but there is no KL: turn on use_kl_loss or use_kl_in_reward.")

    @property
    def needs(self) -> Needs:
        """What its parts need, together."""
        own = Needs(
            reference=self.use_kl_loss or self.use_kl_in_reward or self.kl_band is not None,
            reference_refresh=self.ref_update_interval is not None,
            kl_rewards=self.use_kl_in_reward,
            full_kl=self.kl_band is not None,
        )
        parts = (self.policy_loss, self.kl_controller, self.rollout_correction)
        for part in parts:
            own |= part.needs
        return self.advantage.needs | own

    @property
    def warnings(self) -> list[str]:
        """What is legal but hardly meant, one sentence each, beginning with the field."""
        return cautions(self)


PAPO = Algorithm(advantage=Papo(), policy_loss=Vanilla(clip_ratio_low=0.2, clip_ratio_high=0.28))
"""PAPO as its authors' code trains it: λ = 1, clip-higher, token-mean, no KL (arXiv:2603.26535; tanzelin430/PAPO)."""

GRPO = Algorithm(advantage=Grpo(), policy_loss=Vanilla(clip_ratio_low=0.2, clip_ratio_high=0.28))
"""The outcome-only control of `PAPO`: the same in all else, and equal to it bit for bit at lambda_process = 0."""
