"""Bring the engine to the state that a stage needs: starting, resuming and recovering from a dead engine are one thing.

The engine may hold that state, an earlier one, or none. Load the newest whole checkpoint unless what is in memory is
nearer, then replay the updates in between from their stored inputs, and compare each with what was recorded.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from papo.engines.protocol import Engine
from papo.engines.requests import Open
from papo.errors import Damaged, DiskFull, EngineDied, EngineError, EngineStalled, Fenced, InexactReplay, OutOfMemory
from schemas.canonical import canonical_json
from schemas.filechecks import resolve
from schemas.records import Fingerprint, IterationState, LearnerState, Updated
from tasks.checkpoints import newest_checkpoint
from tasks.publish import ensure_folder, publish_folder, temporary
from tasks.replay import of_engine, recorded, replay
from tasks.run import BESIDE, MODEL, Run

T = TypeVar("T")
ATTEMPTS = 2
RESTARTS = 1
"""Of an engine that stalls, in one stage."""
EXPORT_RECORD = "papo.json"
"""In an exported folder: of which policy it is."""
_RESTORE = "Restore it from a copy of the run directory, or start a new run."
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
        run.engine.silence_seconds = _silence_limit(run)
        try:
            hold(run, state)
            return work(run.engine)
        except OutOfMemory as error:
            # Not counted: it comes to an end, as each time micro-batches are half as large.
            run.journal.event("out_of_memory", reason=str(error))
            run.reporter.message(f"Memory ran out ({error}); starting the engine again.")
            restart(run)
        except EngineStalled as error:
            run.stalls += 1
            run.journal.event("stalled", stage=run.stage, times=run.stalls, reason=str(error))
            if run.stalls > RESTARTS:
                raise
            run.reporter.message(f"ALARM: in {run.stage}, {error}\nStarting it again, with twice the time.")
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


def _silence_limit(run: Run) -> float:
    """How long the engine may do nothing in the stage at hand: twice as long once it has been started again for it."""
    floor = run.configs(run.head.iteration + 1 if run.commits else 0).engine.stall_seconds
    return run.pace.silence_limit(run.stage, floor=floor) * 2**run.stalls


def using_reference(run: Run, state: IterationState, work: Callable[[Engine], T]) -> T:
    """`work` on an engine that holds the frozen reference beside the policy."""
    folder = reference_folder(state)
    if not run.disk.exists(folder):
        raise Damaged(f"{folder}, the reference policy, is missing. {_RESTORE}")

    def with_reference(engine: Engine) -> T:
        if run.reference_loaded != folder:
            check_reference(run, state)
            engine.open(Open(state="reference", model=run.disk.local(folder)))
            run.reference_loaded = folder
        return work(engine)

    return using(run, state, with_reference)


def reference_folder(state: IterationState) -> str:
    """The reference as a Hugging Face folder. A later one than the first is named by its weights too: after an inexact
    replay a version can have other ones."""
    version, sha256 = state.reference_version, state.reference_sha256 or ""
    return f"exports/{version:05d}-{sha256[:8]}" if version else f"exports/{version:05d}"


def export_reference(run: Run, state: IterationState) -> None:
    """Publish the policy that the engine holds as the reference of `state`, unless that was done before."""
    folder = reference_folder(state)
    if run.disk.exists(folder):
        # Whoever gave it its name may have died before the name was durable.
        run.disk.sync_folder("exports")
        return
    ensure_folder(run.disk, "exports")
    staged = temporary(run.disk, folder)
    if run.disk.exists(staged):
        run.disk.remove_tree(staged)
    run.disk.make_folder(staged)
    run.engine.export(run.disk.local(staged))
    files = {name: run.disk.digest(f"{staged}/{name}")[0] for name in run.disk.walk(staged)}
    record = {"version": state.reference_version, "policy_sha256": state.reference_sha256, "files": files}
    run.disk.write(f"{staged}/{EXPORT_RECORD}", canonical_json(record))
    publish_folder(run.disk, staged, folder)


def check_reference(run: Run, state: IterationState) -> None:
    """Raises Damaged unless the reference's folder is what was exported (one from before there were records passes)."""
    folder = reference_folder(state)
    there = set(run.disk.walk(folder))
    if EXPORT_RECORD not in there:
        return
    try:
        record = json.loads(run.disk.read(f"{folder}/{EXPORT_RECORD}"))
        files, sha256 = dict[str, str](record["files"]), record["policy_sha256"]
    except (ValueError, KeyError, TypeError):
        raise Damaged(f"{folder}/{EXPORT_RECORD} is not what was written. {_RESTORE}") from None
    if sha256 != state.reference_sha256:
        raise Damaged(f"{folder} is of the policy {sha256}, not of the reference {state.reference_sha256}. {_RESTORE}")
    for name in sorted(files.keys() | there - {EXPORT_RECORD}):
        if name not in there or run.disk.digest(f"{folder}/{name}")[0] != files.get(name):
            what = "is missing" if name not in there else "is not what was exported"
            raise Damaged(f"{folder}/{name} {what}. {_RESTORE}")


def opened(run: Run, *, model: str, checkpoint: str | None = None) -> None:
    """Open the policy, from a model folder or a checkpoint, together with what the run trains beside it."""
    config = run.configs(max(run.head.iteration, 0) if run.commits else 0)
    critic, prm = config.critic_settings, config.prm_settings
    run.engine.open(
        Open(
            model=model,
            checkpoint=checkpoint,
            critic=critic and _folder_of(run, "critic", critic.path, model, kept=checkpoint is not None),
            implicit_prm=prm and _folder_of(run, "implicit_prm", prm.path, model, kept=checkpoint is not None),
        )
    )


def _folder_of(run: Run, role: str, path: str | None, model: str, *, kept: bool) -> str:
    """Where a model beside the policy starts from: the folder that the config names, or the policy's own. `kept`: its
    weights come from a checkpoint, so that what the run has kept of the folder will do."""
    if path is None:
        return model
    if kept and run.disk.exists(f"{BESIDE}/{role}"):
        return run.disk.local(f"{BESIDE}/{role}")
    return str(resolve(path, Path(run.base)).resolve())


def restart(run: Run) -> None:
    """An empty engine in place of one that died."""
    run.reference_loaded = None
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
        exact = _replay_all(run, recorded(run, version), exact=exact)
        if exact is None:
            break  # Its rollouts came from weights that are lost: the iteration is made again from the new ones.
        version += 1
    if exact and held(run.engine) != target.fingerprint:
        # The state may be one within the iteration at hand: the implicit PRM trained, the policy not yet.
        exact = _replay_all(run, [made for made in run.pending if made.iteration == version], exact=True, to=target)
    if not exact:
        run.pending.clear()
        learner = LearnerState(version=version, fingerprint=_now(run.engine))
        raise StateChanged(run.commits[version].state.model_copy(update={"policy": learner}))
    if held(run.engine) != target.fingerprint:
        raise EngineError(
            f"The engine holds {held(run.engine)} where the run stands at {target.fingerprint}. The first policy was "
            f"loaded from {run.model}: restore that folder as it was when the run began."
        )


def _replay_all(run: Run, updates: Sequence[Updated], *, exact: bool, to: LearnerState | None = None) -> bool | None:
    """Replay an iteration's updates in order, up to where the engine holds `to`; whether all is as recorded so far.

    None where the iteration is at hand and what it began from is lost, so that there is no use in replaying it.
    """
    for update in updates:
        if to is not None and held(run.engine) == to.fingerprint:
            break
        is_pending = update in run.pending
        if is_pending and not exact:
            return None
        after = replay(run, update, off_policy=not exact)
        if exact and after != update.after:
            exact = False
            _inexact(run, update, after)
            if is_pending:
                _supersede(run, update, after)
    return exact


def _supersede(run: Run, update: Updated, after: Fingerprint) -> None:
    """Record what redoing an update of the iteration at hand gave, and begin the iteration again: it adopts that."""
    run.store.supersede_update(update, after)
    # Not always what the last commit says: the iteration may have begun from a lineage that has no commit yet.
    began = LearnerState(version=update.iteration, fingerprint=run.pending[0].before)
    run.pending.clear()
    raise StateChanged(run.commits[update.iteration].state.model_copy(update={"policy": began}))


def holds(run: Run, state: IterationState) -> bool:
    """Whether the engine holds `state` now."""
    return held(run.engine) == state.policy.fingerprint


def held(engine: Engine) -> Fingerprint | None:
    """What the engine holds, as a record."""
    now = engine.held
    return None if now is None else of_engine(now)


def _now(engine: Engine) -> Fingerprint:
    now = held(engine)
    assert now is not None, "an engine that has replayed an update holds its result"
    return now


def _load_nearest(run: Run, target: LearnerState) -> int:
    """Load the newest state at or before `target` unless the engine holds a newer one; returns its version."""
    in_memory = _version_in_memory(run, below=target.version)
    checkpoint = newest_checkpoint(run, at_most=target.version)
    if in_memory is not None and (checkpoint is None or in_memory >= checkpoint.version):
        return in_memory
    if checkpoint is None:
        # Only before the first checkpoint: the first policy comes from its own folder.
        opened(run, model=run.model)
        return 0
    if checkpoint.manifest.lineage > run.lineage:
        raise Fenced(
            f"{checkpoint.folder} is of lineage {checkpoint.manifest.lineage}, but this process works on "
            f"{run.lineage}: another process has taken the run over. Only one can advance it; this one stops, the run "
            "goes on there."
        )
    # A checkpoint of an adapter refers to the base by its hash.
    model = run.model if run.configs(0).model.lora is not None else run.disk.local(MODEL)
    opened(run, model=model, checkpoint=run.disk.local(checkpoint.folder))
    if held(run.engine) != checkpoint.manifest.state.policy.fingerprint:
        raise EngineError(
            f"{checkpoint.folder} was loaded, but the weights in memory hash to {held(run.engine)} instead of "
            f"{checkpoint.manifest.state.policy.fingerprint}, though every file is whole. Versions now: "
            f"{run.engine.environment}; when it was saved: {checkpoint.manifest.environment}. Use the same ones."
        )
    run.journal.event("checkpoint_loaded", version=checkpoint.version)
    return checkpoint.version


def _version_in_memory(run: Run, *, below: int) -> int | None:
    now = held(run.engine)
    if now is None:
        return None
    states = (run.commits[index].state.policy for index in run.commits.of_policy(now.policy_sha256))
    return next((state.version for state in states if state.fingerprint == now and state.version < below), None)


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
