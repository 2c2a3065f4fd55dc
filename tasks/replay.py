"""Redo a recorded update from its stored inputs."""

from papo.engines.protocol import Update
from papo.errors import StoreError
from papo.seeding import seed_for
from schemas.records import Fingerprint, FrameRef, LedgerEntry, Updated
from tasks.run import Run

UPDATE_VERSION = 1
"""Declared version of the update: bump it when equal inputs give other weights."""


def update_request(run: Run, iteration: int, inputs: tuple[FrameRef, ...], *, off_policy: bool = False) -> Update:
    """What the engine is asked for; `inputs` are the references that the update's record keeps."""
    config = run.configs(iteration)
    by_stage: dict[str, list[FrameRef]] = {}
    for ref in inputs:
        by_stage.setdefault(ref.stage, []).append(ref)
    return Update(
        prompts=run.local(by_stage["sample"][0]),
        rollouts=run.locals(by_stage["generate"]),
        advantages=run.local(by_stage["advantage"][0]),
        logprobs=run.locals(by_stage.get("logprobs", [])),
        algorithm=config.algorithm,
        optimizer=config.optimizer,
        temperature=config.sampling.temperature,
        seed=seed_for(config.seed, stage="update", iteration=iteration),
        off_policy=off_policy,
    )


def recorded(run: Run, version: int) -> Updated:
    """The record of the update that took the policy from `version` to the next."""
    if run.pending is not None and run.pending.iteration == version:
        return run.pending
    entries = run.commits[version + 1].entries
    entry = next(entry for entry in entries if entry.stage == "update")
    update = run.store.recorded_update(version, entry.key)
    if update is not None:
        inputs = [made.frame_ref for made in entries if made.path is not None]
        if LedgerEntry.of(update) == entry and all(ref in inputs for ref in update.inputs):
            return update
    raise StoreError(
        f"The record of iteration {version}'s update (update-0000-{entry.key[:16]}.json) is missing or not what was "
        "committed, so it cannot be replayed. Restore it from a copy of the run directory, or start a new run."
    )


def replay(run: Run, update: Updated, *, off_policy: bool) -> Fingerprint:
    """Redo `update` on the engine, which holds the state before it; returns what it now holds.

    Raises StoreError if the update was made by another declared version of the code.
    """
    if update.version != UPDATE_VERSION:
        raise StoreError(
            f"Iteration {update.iteration} was updated by version {update.version} of the update stage; this is "
            f"version {UPDATE_VERSION}, which computes other weights. Resume with the papo release that made it until "
            "its next checkpoint, or start a new run from an export."
        )
    run.reporter.message(f"Replaying the update of iteration {update.iteration} from its stored rollouts.")
    run.journal.event("replayed", iteration=update.iteration, key=update.key)
    result = run.engine.update(
        update_request(run, update.iteration, update.inputs, off_policy=off_policy), run.progress
    )
    return Fingerprint(
        policy_sha256=result.fingerprint.policy_sha256,
        optimizer_sha256=result.fingerprint.optimizer_sha256,
        optimizer_steps=result.fingerprint.optimizer_steps,
    )
