"""train_prm: train the implicit PRM on the iteration's rollouts. Recorded and replayable, like the policy's update."""

from schemas.records import Batch, IterationState, Updated
from tasks.batches import kept_groups
from tasks.replay import TRAIN_PRM_VERSION, train_prm_request
from tasks.run import Run
from tasks.stage import stage
from tasks.update import recorded_or_made


@stage(version=TRAIN_PRM_VERSION)
def train_prm(run: Run, state: IterationState, batch: Batch) -> Updated | None:
    """One record: what went in, and what the weights and moments hash to afterwards. None without an implicit PRM."""
    config = run.configs(state.iteration)
    if config.prm_settings is None:
        return None
    inputs = (*batch.prompts, *batch.rollouts, *batch.logprobs, *batch.outcomes)
    identity = config.identity
    groups = tuple(kept_groups(run, state, batch))
    return recorded_or_made(
        run,
        state,
        name="train_prm",
        version=train_prm.version,
        inputs=inputs,
        groups=groups,
        key_parts={
            "groups": groups,
            "settings": identity["algorithm"]["implicit_prm"],
            "mini_batch_size": config.algorithm.ppo_mini_batch_size,
            "optimizer": config.prm_settings.model_dump(mode="json")["optimizer"],
        },
        work=lambda engine, update: engine.train_prm(train_prm_request(run, update), run.progress),
    )


def after_training(state: IterationState, trained: Updated | None) -> IterationState:
    """The state with the implicit PRM as it was trained: still of this iteration, the policy is not updated yet."""
    if trained is None:
        return state
    policy = state.policy.model_copy(update={"fingerprint": trained.after})
    return state.model_copy(update={"policy": policy})
