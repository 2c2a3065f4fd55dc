"""refresh: iterative GRPO's outer loop, in which the reference becomes the policy every so many iterations."""

from schemas.records import IterationState
from tasks.holding import export_reference, using
from tasks.run import Run
from tasks.stage import stage


@stage(version=1)
def refresh(run: Run, state: IterationState) -> IterationState:
    """The state with the reference that the iteration is to have; its folder is published before it is named."""
    interval = run.configs(state.iteration).algorithm.ref_update_interval
    if not interval or not state.iteration or state.iteration % interval:
        return state
    refreshed = state.model_copy(
        update={"reference_version": state.policy.version, "reference_sha256": state.policy.fingerprint.policy_sha256}
    )
    using(run, state, lambda _: export_reference(run, refreshed))
    return refreshed
