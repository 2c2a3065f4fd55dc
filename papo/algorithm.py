"""An algorithm is a value: a frozen composition of an advantage estimator, a policy loss, KL and aggregation.

The same value serves training, audit and the docs. A new method is a new estimator or loss in a union, or a new preset.
"""

from papo.advantages import Advantage, Grpo, Papo
from papo.losses import EmptyRows, KlType, LossAggMode, PolicyLoss, Vanilla
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
    kl_clamp: float | None = 20.0
    """Bound on the exponent of k3; None = no bound (TRL)."""
    kl_value_clamp: float | None = 10.0
    """Bound on the value of k3, without gradient beyond it (verl); None = no bound (TRL)."""
    kl_on_zero_advantage: bool = True
    """Whether rows whose advantage is 0 are still pulled to the reference."""
    entropy_coeff: float = 0.0
    """Weight of the entropy bonus."""
    ppo_epochs: int = 1
    """How often each rollout is used for an optimizer step."""
    ppo_mini_batch_size: int | None = None
    """Rollouts an optimizer step; None = the whole batch in one. The policy clip is idle with one step a batch."""
    log_ratio_clamp: float | None = 20.0
    """Bound on the exponent of the importance ratio (verl: 20); None = no bound (TRL)."""
    mask_truncated_completions: bool = False
    """Take completions that were cut off at the limit out of the loss and its divisor (DAPO's overlong filtering)."""

    def __post_init__(self) -> None:
        if (self.loss_agg_mode == "seq-mean-token-sum-norm") != (self.loss_norm_constant is not None):
            raise ValueError(
                f"loss_agg_mode is {self.loss_agg_mode} and loss_norm_constant is {self.loss_norm_constant}:"
                " seq-mean-token-sum-norm needs the constant (the longest completion allowed), the other modes none."
            )
        for name in ("loss_norm_constant", "ppo_epochs", "ppo_mini_batch_size"):
            number: int | None = getattr(self, name)
            if number is not None and number < 1:
                raise ValueError(f"{name} is {number}: use 1 or more.")
        for name in ("kl_clamp", "kl_value_clamp", "log_ratio_clamp"):
            bound: float | None = getattr(self, name)
            if bound is not None and not bound > 0:
                raise ValueError(f"{name} is {bound}: use a positive bound, or null for none.")
        if self.use_kl_loss and not self.kl_loss_coef > 0:
            raise ValueError(f"use_kl_loss is on but kl_loss_coef is {self.kl_loss_coef}: give it a positive weight.")

    @property
    def needs(self) -> Needs:
        """What its parts need, together."""
        return self.advantage.needs | self.policy_loss.needs | Needs(reference=self.use_kl_loss)


PAPO = Algorithm(advantage=Papo(), policy_loss=Vanilla(clip_ratio_low=0.2, clip_ratio_high=0.28))
"""PAPO as its authors' code trains it: λ = 1, clip-higher, token-mean, no KL (arXiv:2603.26535; tanzelin430/PAPO)."""

GRPO = Algorithm(advantage=Grpo(), policy_loss=Vanilla(clip_ratio_low=0.2, clip_ratio_high=0.28))
"""The outcome-only control of `PAPO`: the same in all else, and equal to it bit for bit at lambda_process = 0."""
