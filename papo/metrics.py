"""What an iteration and an update are measured by. Each field's docstring is its only definition.

MLflow keys, log lines and the reference page come from these fields. None = there is nothing to measure (no right
row, for instance): no point is logged then, where a 0 would lie.
"""

from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Bool, Float64

from papo.rollouts import AdvantageTerms, Mask, ScoredRollouts


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStats:
    """One update: all optimizer steps over one batch of rollouts."""

    loss: float
    """What was minimised, mean over the optimizer steps. Near 0 on-policy by construction: no measure of learning."""
    policy_loss: float
    """Its policy part, mean over the optimizer steps."""
    kl_loss: float | None
    """Its KL part before the coefficient, mean over the optimizer steps; None without a KL loss."""
    grad_norm: float
    """Norm of the gradient before clipping, mean over the optimizer steps."""
    clip_fraction: float
    """Share of training tokens whose clipped term is active, so that they give no gradient."""
    clip_fraction_lower: float
    """Share of training tokens where the dual clip is active."""
    ratio_max: float
    """Largest importance ratio of a training token."""
    ppo_kl: float
    """Mean of old_logprobs − logprobs over training tokens, in nats."""
    entropy: float | None
    """Mean entropy of the policy over training tokens, in nats; None if not computed."""
    learning_rate: float
    """At the last optimizer step."""
    tokens: int
    """Training tokens of the batch."""
    rows: int
    """Rollouts of the batch with training tokens."""
    optimizer_steps: int
    """Optimizer steps applied."""
    skipped_steps: int
    """Optimizer steps not applied because loss or gradient was not finite; the schedule does not move."""
    no_signal: bool
    """No optimizer step had a signal, so the policy was left as it was."""
    first_ratio_deviation: float
    """Largest |ratio − 1| in the first pass over the batch; 0 if old_logprobs are the policy's own."""
    sampler_gap_mean: float | None
    """Mean of |probability by the trainer − by the sampler| over training tokens; None without sampler_logprobs."""
    sampler_gap_max: float | None
    """Its largest value."""
    sampler_logprob_gap_mean: float | None
    """Mean of |log-prob by the trainer − by the sampler| over training tokens, in nats; what gap_alarm bounds."""
    sampler_logprob_gap_max: float | None
    """Its largest value."""
    sampler_k1: float | None
    """Mean of sampler_logprobs − old_logprobs over training tokens: KL(sampler, trainer), unbiased, of any sign."""
    sampler_k3: float | None
    """Mean of r − 1 − log r with r = trainer's probability / sampler's: the same KL, never negative."""
    sampler_effective_sample_size: float | None
    """(Σ r)² / (n·Σ r²): the share of the tokens that importance weights leave; 1 = sampler and trainer agree."""
    clamped_log_ratios: int
    """Training tokens whose log-ratio was beyond log_ratio_clamp."""
    steps_without_signal: int = 0
    """Optimizer steps not taken, as the rows of the mini-batch had nothing to learn from: every training token has
    advantage 0 (or correction weight 0) and no KL or entropy term acts, or all are masked or rejected. Neither
    weights, moments nor the schedule move."""
    micro_batch_size: int | None
    """Rows of a micro-batch, after it was halved because memory ran out; None where memory was enough."""
    rejected_ratio: float | None = None
    """Share of training tokens that rollout_rs or kl_band rejected; None without them."""
    correction_mean: float | None = None
    """Mean weight of sampler/trainer correction over training tokens; None where there is none."""
    value_loss: float | None = None
    """The critic's loss before vf_coef, mean over its optimizer steps; None without a critic."""
    value_clip_fraction: float | None = None
    """Share of training tokens whose value is beyond cliprange_value, so that it gives no gradient."""
    explained_variance: float | None = None
    """1 − var(returns − values)/var(returns) before the update: 1 is a perfect critic, 0 one that knows nothing."""
    critic_grad_norm: float | None = None
    """Norm of the critic's gradient before clipping, mean over its optimizer steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrmStats:
    """Training the implicit PRM on the rollouts of one iteration."""

    loss: float
    """Cross-entropy a row, mean over the optimizer steps."""
    grad_norm: float
    """Norm of the gradient before clipping, mean over the optimizer steps."""
    rows: int
    """Rollouts with a label."""
    optimizer_steps: int
    """Optimizer steps applied."""
    skipped_steps: int
    """Optimizer steps not applied because loss or gradient was not finite."""
    steps_without_signal: int = 0
    """Optimizer steps not taken, as no row of the mini-batch has a training token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationSummary:
    """The rollouts of one iteration and their advantages. Shares are of scorable rows unless said."""

    rollouts: int
    """Rows, those without a reward included."""
    groups: int
    """Groups."""
    outcome_mean: float | None
    """Mean outcome reward."""
    outcome_std: float | None
    """Population standard deviation of the outcome rewards."""
    accuracy: float | None
    """Share of right rows, before shaping."""
    process_mean: float | None
    """Mean process score of the rows that have one."""
    process_std: float | None
    """Population standard deviation of the process scores."""
    process_active_ratio: float
    """Share of groups in which process scores told rows apart."""
    correct_advantage_mean: float | None
    """Mean advantage of the right rows."""
    correct_advantage_min: float | None
    """Smallest advantage of a right row."""
    correct_advantage_max: float | None
    """Largest advantage of a right row."""
    correct_process_advantage_mean: float | None
    """Mean process part of the right rows' advantages; 0 for PAPO, by construction."""
    process_advantage_mean: float | None
    """Mean process part of all advantages: how far the scorer pushes everything up or down (PRPO)."""
    wrong_advantage_mean: float | None
    """Mean advantage of the wrong rows."""
    wrong_advantage_min: float | None
    """Smallest advantage of a wrong row."""
    wrong_advantage_max: float | None
    """Largest advantage of a wrong row."""
    advantage_std: float | None
    """Population standard deviation of the advantages."""
    zero_advantage_ratio: float | None
    """Share of rows whose advantage is 0 at every token: signal exhaustion."""
    zero_variance_groups: float
    """Share of groups in which every advantage is 0."""
    pos_adv_ratio: float | None
    """Share of rows with a positive advantage."""
    all_correct_ratio: float
    """Share of groups in which every scorable row is right."""
    all_wrong_ratio: float
    """Share of groups in which every scorable row is wrong."""
    length_mean: float | None
    """Mean completion tokens of all rows."""
    length_correct_mean: float | None
    """Mean completion tokens of the right rows."""
    length_wrong_mean: float | None
    """Mean completion tokens of the wrong rows."""
    truncated_ratio: float | None
    """Share of all rows that were cut off at the token limit."""
    unscorable: int
    """Rows whose outcome reward is unknown."""
    order_violations: int
    """Right rows whose advantage is below that of some wrong row of their group."""


def summarize(rollouts: ScoredRollouts, terms: AdvantageTerms, *, truncated: Mask) -> IterationSummary:
    """The numbers of one iteration, by the definitions of `IterationSummary`."""
    scorable = rollouts.scorable
    right, wrong = rollouts.correct & scorable, ~rollouts.correct & scorable
    total = terms.total
    return IterationSummary(
        rollouts=len(total),
        outcome_mean=_mean(rollouts.outcome[scorable]),
        outcome_std=_std(rollouts.outcome[scorable]),
        accuracy=_share(right[scorable]),
        process_mean=_mean(rollouts.process[~np.isnan(rollouts.process)]),
        process_std=_std(rollouts.process[~np.isnan(rollouts.process)]),
        correct_process_advantage_mean=_mean(terms.process[right]),
        process_advantage_mean=_mean(terms.process[scorable]),
        correct_advantage_mean=_mean(total[right]),
        correct_advantage_min=_least(total[right]),
        correct_advantage_max=_most(total[right]),
        wrong_advantage_mean=_mean(total[wrong]),
        wrong_advantage_min=_least(total[wrong]),
        wrong_advantage_max=_most(total[wrong]),
        advantage_std=_std(total[scorable]),
        zero_advantage_ratio=_share(terms.silent[scorable]),
        pos_adv_ratio=_share(total[scorable] > 0.0),
        length_mean=_mean(rollouts.lengths.astype(np.float64)),
        length_correct_mean=_mean(rollouts.lengths[right].astype(np.float64)),
        length_wrong_mean=_mean(rollouts.lengths[wrong].astype(np.float64)),
        truncated_ratio=_share(truncated),
        unscorable=int((~scorable).sum()),
        groups=len(_members(rollouts)),
        order_violations=_order_violations(rollouts, terms),
        **_group_shares(rollouts, terms),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFigures:
    """How the batch was drawn, and how far the policy is from its reference."""

    gen_rounds: int | None
    """Rounds of drawing; None without dynamic sampling or accuracy filter, as the three below."""
    groups_drawn: int | None
    """Groups of all rounds."""
    groups_kept: int | None
    """Those that are trained on; the iteration's other figures are theirs."""
    lost: int | None
    """Rollouts that the generator never answered and that were dropped; None without one."""
    drawn_accuracy: float | None
    """Share of right rows among all that were drawn: the policy's own, before the filter."""
    reference_kl: float | None
    """Mean of old_logprobs − ref_logprobs over all tokens: the KL from the reference, unbiased, in nats a token."""
    reference_full_kl: float | None
    """The same exactly, over the whole vocabulary; with kl_band."""
    kl_coef: float | None
    """The KL controller's coefficient for the next iteration; None while it is fixed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionFigures:
    """What an LLM's second opinion did; of an evaluation's rows with `evaluation/` before the names."""

    llm_asked: float
    """Share of all rows about whose rejected answer it was asked."""
    llm_corrected: float | None
    """Share of scorable rows that it made right: how much of the accuracy is its word alone."""
    llm_failed: float | None
    """Share of the rows it was asked about on which there is no opinion: no reply, or one without a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrmFigures:
    """How well the implicit PRM tells right from wrong rollouts, as it scored them."""

    prm_dpo_accuracy: float
    """Share of pairs of a right and a wrong rollout of one group whose summed rewards are in that order; 0.5: none."""
    prm_accuracy: float | None
    """Share of rollouts whose summed reward is above 0 just if they are right."""


def prm_figures(rollouts: ScoredRollouts) -> dict[str, float | int | bool | None]:
    """By the definitions of `PrmFigures`."""
    rewards = rollouts.token_rewards
    assert rewards is not None, "an implicit PRM gives token rewards"
    sums = np.array([rewards.row(row).sum() for row in range(rewards.rows)])
    right, known = rollouts.correct, rollouts.scorable
    ordered = pairs = 0
    for members in _members(rollouts):
        above, below = sums[members & known & right], sums[members & known & ~right]
        pairs += len(above) * len(below)
        ordered += int((above[:, None] > below[None, :]).sum())
    figures = PrmFigures(
        prm_dpo_accuracy=ordered / pairs if pairs else 0.5, prm_accuracy=_share(((sums > 0) == right)[known])
    )
    return dict(asdict(figures))


def _members(rollouts: ScoredRollouts) -> list[Mask]:
    return [rollouts.group == group_id for group_id in np.unique(rollouts.group)]


def _group_shares(rollouts: ScoredRollouts, terms: AdvantageTerms) -> dict[str, float]:
    groups = _members(rollouts)
    right, wrong = rollouts.correct & rollouts.scorable, ~rollouts.correct & rollouts.scorable
    marks = {
        "process_active_ratio": [terms.process_active[members].any() for members in groups],
        "zero_variance_groups": [terms.silent[members].all() for members in groups],
        "all_correct_ratio": [right[members].any() and not wrong[members].any() for members in groups],
        "all_wrong_ratio": [wrong[members].any() and not right[members].any() for members in groups],
    }
    return {name: sum(map(bool, marked)) / max(1, len(groups)) for name, marked in marks.items()}


def _order_violations(rollouts: ScoredRollouts, terms: AdvantageTerms) -> int:
    right, wrong = rollouts.correct & rollouts.scorable, ~rollouts.correct & rollouts.scorable
    mixed = [members for members in _members(rollouts) if (members & wrong).any()]
    return sum(int((terms.total[members & right] < terms.total[members & wrong].max()).sum()) for members in mixed)


Some = Float64[np.ndarray, " some"]


def _mean(values: Some) -> float | None:
    return float(values.mean()) if len(values) else None


def _std(values: Some) -> float | None:
    return float(values.std()) if len(values) else None


def _least(values: Some) -> float | None:
    return float(values.min()) if len(values) else None


def _most(values: Some) -> float | None:
    return float(values.max()) if len(values) else None


def _share(mask: Bool[np.ndarray, " some"]) -> float | None:
    return float(mask.mean()) if len(mask) else None
