"""The optimizer steps of one iteration on stored rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from papo.engines import distributed
from papo.engines.batching import MicroBatch, aligned, plan, token_batch
from papo.engines.critic_update import CriticStep, CriticTraining, critic_stats
from papo.engines.forward import score_completions
from papo.engines.learner import Learner
from papo.engines.memory import within_memory
from papo.engines.requests import Update
from papo.engines.rows import TrainingRows, training_rows
from papo.engines.sampler_gap import sampler_figures, sampler_sums
from papo.engines.schedule import learning_rate
from papo.engines.settings import EngineSettings
from papo.errors import EngineError
from papo.losses import LossInputs, row_weights
from papo.losses.objective import Objective, merge_sums, policy_objective
from papo.metrics import UpdateStats
from papo.seeding import epoch_order

LARGEST_FIRST_DEVIATION = {"float32": 1e-3, "bfloat16": 0.2}
"""|ratio − 1| before any step that is taken for rounding; more means other weights, temperature or positions."""


Weights = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Step:
    """What one optimizer step gave, over all ranks."""

    sums: dict[str, float]
    has_signal: bool
    """Whether its rows had anything to learn from. Without, it is no step: nothing moves, the schedule neither."""
    norm: float
    """Of the gradient."""
    applied: bool
    critic: CriticStep | None = None


def train_policy(
    learner: Learner,
    request: Update,
    *,
    settings: EngineSettings,
    rank: int,
    tick: Callable[[int, int], None],
    critic: Learner | None = None,
) -> UpdateStats:
    """Take the optimizer steps that `request` asks for, of the policy and of its critic, and report on them.

    A mini-batch without signal is only measured: a step of zero gradient would move the weights by old momentum.
    Raises EngineError when several steps are to be taken without old_logprobs, or when the first ratio is not 1.
    """
    update = _Update(learner, critic, request, training_rows(request), settings, rank)
    planned = list(mini_batches(request, len(update.rows.examples)))
    if len(planned) > 1 and update.rows.old_logprobs is None:
        raise EngineError(
            f"{len(planned)} optimizer steps are to be taken on one batch, but no frame brings old_logprobs: after the"
            " first step they cannot be computed any more. Run the logprobs stage on the policy before the update."
        )
    steps: list[Step] = []
    for number, chosen in enumerate(planned):
        steps.append(update.step(chosen, first=not any(step.applied for step in steps)))
        tick(number + 1, len(planned))
    return update.stats(steps)


def mini_batches(request: Update, rows: int) -> Iterator[list[int]]:
    """The rows of each optimizer step: every row exactly `ppo_epochs` times, in an order addressed by (seed, epoch).

    Within a step they are sorted: its gradient is then a function of the set of rows, to the bit.
    """
    size = request.algorithm.ppo_mini_batch_size or max(rows, 1)
    for epoch in range(request.algorithm.ppo_epochs):
        order = epoch_order(request.seed, epoch=epoch, size=rows, stage="update")
        for start in range(0, rows, size):
            yield sorted(order[start : start + size].tolist())


@dataclass(frozen=True, slots=True)
class _Update:
    learner: Learner
    critic: Learner | None
    request: Update
    rows: TrainingRows
    settings: EngineSettings
    rank: int

    def step(self, chosen: Sequence[int], *, first: bool) -> Step:
        algorithm = self.request.algorithm
        weights = row_weights(
            self.rows.training_tokens[list(chosen)],
            mode=algorithm.loss_agg_mode,
            constant=algorithm.loss_norm_constant,
            empty_rows=algorithm.empty_rows,
        )
        differentiated = self._may_act(chosen)
        sums = within_memory(
            self.learner, lambda size: self._add_up(chosen, weights, size, differentiated=differentiated)
        )
        if first and not (self.request.off_policy or self.request.algorithm.rollout_correction.bypass_mode):
            self._check_first_ratio(sums["ratio_deviation_max"])
        norm, applied = 0.0, False
        # Of the stored rows and of sums over all ranks: every rank comes to the same, and so does a replay.
        has_signal = differentiated and (sums["credited"] > 0 or self._other_terms_act(chosen))
        if has_signal:
            finite = all(np.isfinite(number) for number in sums.values())
            norm, applied = self.learner.step(self.request.optimizer, finite=finite)
        elif differentiated:
            self.learner.discard()
        if self.critic is None:
            return Step(sums, has_signal, norm, applied)
        training = CriticTraining(self.critic, self.request, self.rows, self.settings, self.rank)
        return Step(sums, has_signal, norm, applied, training.step(chosen))

    def _add_up(self, chosen: Sequence[int], weights: Weights, size: int, *, differentiated: bool) -> dict[str, float]:
        """Gather the gradient of one optimizer step in micro-batches of `size` rows; the sums over all ranks."""
        lengths = [self.rows.examples[row].length for row in chosen]
        limits = self.learner.position_limits
        batches = plan(lengths, micro_batch_size=size, ranks=self.settings.ranks, limits=limits)[self.rank]
        parts: list[dict[str, float]] = []
        for number, batch in enumerate(batches):
            with torch.set_grad_enabled(differentiated):
                objective, entropy = self._objective([chosen[index] for index in batch.rows], batch, weights)
            if differentiated:
                self.learner.backward(objective.loss, last=number + 1 == len(batches))
            if batch.counted:
                parts.append({name: float(part) for name, part in objective.sums.items()} | entropy)
        return distributed.total(merge_sums(parts), self.learner.device)

    def _may_act(self, chosen: Sequence[int]) -> bool:
        """Whether the policy is to be trained and the rows have a signal, as far as can be told before the forward
        pass: the weights of sampler/trainer correction, made there, may still be 0 for each of them."""
        has_tokens = self.rows.training_tokens[list(chosen)].any()
        return bool(
            self.request.train_policy
            and has_tokens
            and (self.rows.with_advantage[list(chosen)].any() or self._other_terms_act(chosen))
        )

    def _other_terms_act(self, chosen: Sequence[int]) -> bool:
        """Whether a KL or entropy term gives training tokens a gradient, whatever the policy loss gives them."""
        algorithm = self.request.algorithm
        kl_acts = algorithm.use_kl_loss and (
            algorithm.kl_on_zero_advantage or bool(self.rows.with_advantage[list(chosen)].any())
        )
        return kl_acts or algorithm.entropy_coeff != 0.0

    def stats(self, steps: Sequence[Step]) -> UpdateStats:
        algorithm, request = self.request.algorithm, self.request
        applied = [step for step in steps if step.applied]
        # What a skipped step measured is not finite and would hide what the others did.
        measured = applied or steps
        sums = merge_sums(step.sums for step in measured)
        tokens = max(sums.get("tokens", 0.0), 1.0)
        count = max(len(measured), 1)
        policy_loss = sums.get("policy_loss", 0.0) / count
        kl_loss = sums["kl_loss"] / count if "kl_loss" in sums else None
        bonus = algorithm.entropy_coeff * sums.get("entropy", 0.0) / count
        last = self.learner.optimizer_steps - (1 if applied else 0)
        return UpdateStats(
            loss=policy_loss + algorithm.kl_loss_coef * (kl_loss or 0.0) - bonus,
            policy_loss=policy_loss,
            kl_loss=kl_loss,
            grad_norm=sum(step.norm for step in measured) / count,
            clip_fraction=sums.get("clipped", 0.0) / tokens,
            clip_fraction_lower=sums.get("clipped_lower", 0.0) / tokens,
            ratio_max=sums.get("ratio_max", 1.0),
            ppo_kl=sums.get("ppo_kl", 0.0) / tokens,
            entropy=sums["token_entropy"] / tokens if "token_entropy" in sums else None,
            learning_rate=learning_rate(request.optimizer, step=last),
            tokens=int(self.rows.training_tokens.sum()),
            rows=int((self.rows.training_tokens > 0).sum()),
            optimizer_steps=len(applied),
            skipped_steps=sum(step.has_signal and not step.applied for step in steps),
            steps_without_signal=sum(not step.has_signal for step in steps) if request.train_policy else 0,
            no_signal=request.train_policy and not any(step.has_signal for step in steps),
            first_ratio_deviation=steps[0].sums["ratio_deviation_max"] if steps else 0.0,
            sampler_gap_mean=sums["sampler_gap"] / tokens if "sampler_gap" in sums else None,
            sampler_gap_max=sums.get("sampler_gap_max"),
            **sampler_figures(sums),
            **critic_stats(request.critic, [step.critic for step in steps if step.critic is not None]),
            rejected_ratio=self.rows.rejected_ratio,
            correction_mean=sums["correction"] / tokens if "correction" in sums else None,
            clamped_log_ratios=int(sums.get("clamped_log_ratios", 0.0)),
            micro_batch_size=None if self.learner.is_whole else self.learner.micro_batch_size,
        )

    def _objective(
        self, members: Sequence[int], batch: MicroBatch, weights: Weights
    ) -> tuple[Objective, dict[str, float]]:
        """The micro-batch's part of the loss, and its token sum of entropies where they are computed."""
        rows, device, algorithm = self.rows, self.learner.device, self.request.algorithm
        tokens = token_batch([rows.examples[row] for row in members], width=batch.width, device=device)
        scores = score_completions(
            self.learner.engine, tokens, temperature=self.request.temperature, entropies=algorithm.entropy_coeff != 0.0
        )

        def of_members(lists: Sequence[Sequence[float]]) -> Tensor:
            return aligned([lists[row] for row in members], device=device)

        row_weight = torch.tensor(weights[list(batch.rows)], dtype=torch.float32) * float(batch.counted)
        mask = of_members(rows.masks).bool()
        inputs = LossInputs(
            logprobs=scores.logprobs,
            old_logprobs=scores.logprobs.detach() if rows.old_logprobs is None else of_members(rows.old_logprobs),
            advantages=of_members(rows.advantages),
            completion_mask=mask,
            row_weights=row_weight.to(device),
            ref_logprobs=None if rows.ref_logprobs is None else of_members(rows.ref_logprobs),
            sampler_logprobs=of_members(rows.sampler_logprobs),
            entropies=scores.entropies,
            correction_weights=None if rows.correction_weights is None else of_members(rows.correction_weights),
        )
        entropy = {} if scores.entropies is None else {"token_entropy": float(scores.entropies.detach()[mask].sum())}
        return policy_objective(algorithm, inputs), entropy | sampler_sums(
            inputs, bypass=algorithm.rollout_correction.bypass_mode
        )

    def _check_first_ratio(self, deviation: float) -> None:
        limit = LARGEST_FIRST_DEVIATION[self.settings.dtype]
        if deviation > limit:
            raise EngineError(
                f"before the first optimizer step the importance ratio is off 1 by {deviation:.3g} (limit {limit}):"
                " old_logprobs do not come from these weights at this temperature, or positions have moved. Make the"
                " log-probs again from the policy that is open; nothing was trained."
            )
