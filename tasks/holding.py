"""Bring the engine to the state that a stage needs: starting, resuming and recovering from a dead engine are one thing.

The engine may hold that state, an earlier one, or none. Load the newest whole checkpoint unless what is in memory is
nearer, then replay the updates in between from their stored inputs, and compare each with what was recorded.
"""

from collections.abc import Callable
from typing import TypeVar

from papo.engines.protocol import Engine, Open
from papo.errors import DiskFull, EngineDied, EngineError, InexactReplay, OutOfMemory
from schemas.records import Fingerprint, IterationState, LearnerState, Updated
from tasks.checkpoints import newest_checkpoint
from tasks.replay import recorded, replay
from tasks.run import MODEL, Run

T = TypeVar("T")
ATTEMPTS = 2
SPARE = 1 << 20
"""Bytes free below which an engine's failure is taken for that of a full disk."""


class StateChanged(Exception):
    """A replay did not give the recorded weights and the run goes on from what it gave, in a new lineage."""

    def __init__(self, state: IterationState) -> None:
        super().__init__("the policy was replayed to other weights than recorded")
        self.state = state


def using(run: Run, state: IterationState, work: Callable[[Engine], T]) -> T:
    """`work` on an engine that holds `state`. An engine that dies is started again and brought back, once."""
    attempt = 1
    while True:
        try:
            hold(run, state)
            return work(run.engine)
        except OutOfMemory as error:
            # Not counted: it comes to an end, as each time micro-batches are half as large.
            run.journal.event("out_of_memory", reason=str(error))
            run.reporter.message(f"Memory ran out ({error}); starting the engine again.")
            restart(run)
        except EngineDied as error:
            run.journal.event("engine_died", attempt=attempt, reason=str(error))
            if attempt == ATTEMPTS:
                raise
            run.reporter.message(f"The engine died ({error}); starting it again from the newest checkpoint.")
            attempt += 1
            restart(run)
        except EngineError as error:
            if run.disk.free() >= SPARE:
                raise
            # The engine writes its own files, and what its libraries say of a full disk is not always that.
            raise DiskFull(
                f"No space is left where the run is, and the engine could not write ({error}). Everything published so "
                "far is safe: free some space, then resume the run."
            ) from error


def using_reference(run: Run, state: IterationState, work: Callable[[Engine], T]) -> T:
    """`work` on an engine that holds the frozen reference beside the policy."""

    def with_reference(engine: Engine) -> T:
        if not run.reference_loaded:
            engine.open(Open(state="reference", model=run.disk.local(reference_folder())))
            run.reference_loaded = True
        return work(engine)

    return using(run, state, with_reference)


def reference_folder() -> str:
    """Version 0 as a Hugging Face folder, kept where an algorithm needs a reference."""
    return "exports/00000"


def restart(run: Run) -> None:
    """An empty engine in place of one that died."""
    run.reference_loaded = False
    run.engine.close()
    run.engine.start()


def hold(run: Run, state: IterationState) -> None:
    """Make the engine hold `state`.

    Raises StateChanged (or InexactReplay, as the config says) where a replay is not bit-equal, and EngineError where
    the loaded weights are not those that were saved.
    """
    target = state.policy
    if holds(run, state):
        return
    version, exact = _load_nearest(run, target), True
    while version < target.version:
        update = recorded(run, version)
        if update is run.pending and not exact:
            break  # Its rollouts came from weights that are lost: the iteration is made again from the new ones.
        after = replay(run, update, off_policy=not exact)
        if exact and after != update.after:
            exact = False
            _inexact(run, update, after)
            if update is run.pending:
                run.pending = run.store.supersede_update(update, after)
                raise StateChanged(run.commits[version].state)
        version += 1
    if not exact:
        run.pending = None
        learner = LearnerState(version=version, fingerprint=_now(run.engine))
        raise StateChanged(run.commits[version].state.model_copy(update={"policy": learner}))
    if held(run.engine) != target.fingerprint:
        raise EngineError(
            f"The engine holds {held(run.engine)} where the run stands at {target.fingerprint}. The first policy was "
            f"loaded from {run.model}: restore that folder as it was when the run began."
        )


def holds(run: Run, state: IterationState) -> bool:
    """Whether the engine holds `state` now."""
    return held(run.engine) == state.policy.fingerprint


def held(engine: Engine) -> Fingerprint | None:
    """What the engine holds, as a record."""
    now = engine.held
    if now is None:
        return None
    return Fingerprint(
        policy_sha256=now.policy_sha256, optimizer_sha256=now.optimizer_sha256, optimizer_steps=now.optimizer_steps
    )


def _now(engine: Engine) -> Fingerprint:
    now = held(engine)
    assert now is not None, "an engine that has replayed an update holds its result"
    return now


def _load_nearest(run: Run, target: LearnerState) -> int:
    """Load the newest state at or before `target` unless the engine holds a newer one; returns its version."""
    known = {commit.state.policy.version: commit.state.policy.fingerprint for commit in run.commits}
    in_memory = next((v for v, mark in known.items() if mark == held(run.engine) and v < target.version), None)
    checkpoint = newest_checkpoint(run, at_most=target.version)
    if in_memory is not None and (checkpoint is None or in_memory >= checkpoint.version):
        return in_memory
    if checkpoint is None:
        # Only before the first checkpoint: the first policy comes from its own folder.
        run.engine.open(Open(model=run.model))
        return 0
    # A checkpoint of an adapter refers to the base by its hash.
    model = run.model if run.configs(0).model.lora is not None else run.disk.local(MODEL)
    run.engine.open(Open(model=model, checkpoint=run.disk.local(checkpoint.folder)))
    if held(run.engine) != checkpoint.manifest.state.policy.fingerprint:
        raise EngineError(
            f"{checkpoint.folder} was loaded, but the weights in memory hash to {held(run.engine)} instead of "
            f"{checkpoint.manifest.state.policy.fingerprint}, though every file is whole. Versions now: "
            f"{run.engine.environment}; when it was saved: {checkpoint.manifest.environment}. Use the same ones."
        )
    run.journal.event("checkpoint_loaded", version=checkpoint.version)
    return checkpoint.version


def _inexact(run: Run, update: Updated, after: Fingerprint) -> None:
    policy = run.configs(update.iteration).on_inexact_replay
    run.journal.event(
        "inexact_replay", iteration=update.iteration, recorded=update.after.model_dump(), now=after.model_dump()
    )
    if policy == "stop":
        raise InexactReplay(
            f"Replaying the update of iteration {update.iteration} gave weights {after.policy_sha256[:16]}… instead of "
            f"the recorded {update.after.policy_sha256[:16]}…: another device, thread count or library version. Resume "
            "where the run was made, or with on_inexact_replay: correct (a new recorded lineage)."
        )
    run.lineage = run.head.lineage + 1
    run.reporter.message(
        f"The replay of iteration {update.iteration} is not bit-equal; going on as lineage {run.lineage}, with the "
        "stored rollouts as off-policy data."
    )
