"""When a run ends before its horizon: derived from what is committed, so that it is the same after any resume.

A guard that needs several iterations in a row counts only those under the present config: an amendment that mends the
cause starts the count anew, so that the run can go on.
"""

from collections.abc import Callable

from papo.correctness import accuracy_in
from schemas.config import RunConfig, StopConfig
from schemas.records import Commit
from tasks.history import History


def stop_reason(config: RunConfig, commits: History) -> str | None:
    """A line that says why the run stops here, beginning with the name of the rule; None where none applies.

    No rule looks at more commits than it has to count: a long run takes no longer over it than a short one.
    """
    reasons = (rule(config, commits) for rule in _RULES)
    return next((reason for reason in reasons if reason is not None), None)


def _target(config: RunConfig, commits: History) -> str | None:
    target, accuracy = config.stop.target_accuracy, commits[-1].summary.get("evaluation/accuracy")
    if target is None or accuracy is None or accuracy < target:
        return None
    return f"target_accuracy: held-out accuracy {accuracy:.3f} has reached {target}"


def _plateau(config: RunConfig, commits: History) -> str | None:
    patience, (called, latest) = config.stop.plateau_evaluations, accuracy_in(commits[-1].summary, prefix="evaluation/")
    if patience is None or latest is None:
        return None
    # What a verifier found is never compared with what a reward model predicts.
    accuracies = [one.accuracy for one in commits.evaluated if one.name == called]
    if len(accuracies) <= patience:
        return None
    before, since = max(accuracies[:-patience]), max(accuracies[-patience:])
    if since > before:
        return None
    return f"plateau: none of the last {patience} evaluations was better than {before:.3f} ({called})"


def _truncated(config: RunConfig, commits: History) -> str | None:
    streak = config.stop.all_truncated
    if not _lasts(streak, config, commits, lambda commit: commit.summary.get("truncated_ratio") == 1.0):
        return None
    return (
        f"all_truncated: every completion of the last {streak} iterations was cut off at "
        f"sampling.max_completion_length = {config.sampling.max_completion_length}; no answer was ever finished. "
        "Raise the limit (by an amendment: --amend sampling.max_completion_length=N)"
    )


def _non_finite(config: RunConfig, commits: History) -> str | None:
    streak = config.stop.non_finite
    if not _lasts(streak, config, commits, _without_step):
        return None
    return (
        f"non_finite: no optimizer step of the last {streak} iterations had a finite loss and gradient; the weights "
        "are those from before. Lower optimizer.learning_rate or check the rewards"
    )


def _no_signal(config: RunConfig, commits: History) -> str | None:
    streak = config.stop.no_signal
    if streak is None or not _lasts(streak, config, commits, _without_signal):
        return None
    if _undecided(commits[-1]):
        return (
            f"no_signal: no rollout of the latest iteration has a reward, nothing was learned in the last {streak}. "
            "The samples name the reasons; a check of the data holds references to the reward"
        )
    return (
        f"no_signal: every advantage of the last {streak} iterations was 0 (all rewards of a group alike), so "
        "nothing was learned. Use prompts of fitting difficulty, more rollouts a prompt, or process rewards"
    )


def _without_signal(commit: Commit) -> bool:
    return _undecided(commit) or commit.summary.get("zero_advantage_ratio") == 1.0


def _undecided(commit: Commit) -> bool:
    """Whether all rewards are null, so that there is no advantage that could be 0."""
    rollouts = commit.summary.get("rollouts")
    return rollouts is not None and rollouts > 0 and commit.summary.get("unscorable") == rollouts


def _exhausted(config: RunConfig, commits: History) -> str | None:
    rule, kept = config.sampling.filter_groups, commits[-1].summary.get("groups_kept")
    if rule is None or rule.when_exhausted != "stop" or kept is None or kept >= config.prompts_per_iteration:
        return None
    return (
        f"exhausted: {rule.max_num_gen_batches} rounds of drawing gave too few groups with a signal for "
        f"{config.prompts_per_iteration} prompts. Use prompts of fitting difficulty, more rollouts a prompt, more "
        "rounds (sampling.filter_groups.max_num_gen_batches), or when_exhausted: train"
    )


def _blow_up(config: RunConfig, commits: History) -> str | None:
    stop, latest = config.stop, commits[-1].summary
    limits = (
        ("update/ppo_kl", stop.max_ppo_kl, "the policy moved further in one update"),
        ("update/kl_loss", stop.max_kl, "the policy is further from its reference"),
        ("reference_kl", stop.max_kl, "the policy is further from its reference"),
        ("length_mean", _length_limit(stop, commits), "completions grew longer"),
    )
    for name, limit, what in limits:
        value = latest.get(name)
        if limit is not None and value is not None and value > limit:
            return f"blow_up: {what} than allowed ({name} is {value:.4g}, the limit {limit:.4g})"
    entropy = latest.get("update/entropy")
    if stop.min_entropy is not None and entropy is not None and entropy < stop.min_entropy:
        return (
            f"entropy: the policy's entropy is {entropy:.4g} nats a token, below stop.min_entropy = {stop.min_entropy}"
        )
    return None


def _length_limit(stop: StopConfig, commits: History) -> float | None:
    first = commits.first_length
    return None if stop.max_length_growth is None or first is None else stop.max_length_growth * first


def _without_step(commit: Commit) -> bool:
    return bool(commit.summary.get("update/skipped_steps")) and not commit.summary.get("update/optimizer_steps")


def _lasts(streak: int, config: RunConfig, commits: History, holds: Callable[[Commit], bool]) -> bool:
    """Whether the last `streak` iterations are all so, under the present config."""
    # (The newest first, which is mostly not so and ends the matter.)
    latest = (commits[-ago] for ago in range(1, streak + 1))
    present = commits.config_sha256 or config.sha256
    return len(commits) >= streak and all(holds(commit) and commit.config_sha256 == present for commit in latest)


_RULES = (_target, _plateau, _truncated, _non_finite, _no_signal, _exhausted, _blow_up)
