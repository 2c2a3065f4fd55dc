"""What a part of an algorithm needs beside the rollouts and their outcome rewards.

Each advantage estimator and loss declares it, and the algorithm's is the union, so the run config can demand or
refuse the rest (a scorer, a reference, a critic, an implicit PRM) with a clear message before anything is loaded.
"""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Which stages must have run before the advantages and the update of an iteration."""

    process_scores: bool = False
    """One process score a rollout, or one a step, from a process scorer."""
    step_scores: bool = False
    """The score and the last token of each step, on the rollouts that the estimator sees."""
    reference: bool = False
    """Log-probs of the frozen reference policy."""
    reference_refresh: bool = False
    """A reference that is replaced by the policy every so many iterations."""
    critic: bool = False
    """Values of a critic, one a token."""
    implicit_prm: bool = False
    """Token rewards of an implicit PRM, which is trained along."""
    entropies: bool = False
    """Entropies of the policy at rollout time, one a token."""
    kl_rewards: bool = False
    """The KL from the reference as a reward of each token, before the advantages."""
    kl_control: bool = False
    """A KL coefficient that is kept and adapted from iteration to iteration."""
    full_kl: bool = False
    """KL over the whole vocabulary from the reference, one a token, before the update."""
    corrections: bool = False
    """Sampler/trainer correction of the whole batch before its divisors are counted."""
    components: bool = False
    """Several rewards a rollout."""
    iteration: bool = False
    """The number of the iteration, on the rollouts that the estimator sees."""

    def __or__(self, other: "Needs") -> "Needs":
        return Needs(**{field.name: getattr(self, field.name) or getattr(other, field.name) for field in fields(Needs)})
