"""Redo a recorded update from its stored inputs."""

from collections.abc import Sequence
from dataclasses import asdict, replace

from papo.algorithm import Algorithm
from papo.engines import requests
from papo.engines.requests import CriticUpdate, TrainPrm, Update
from papo.errors import StoreError
from papo.seeding import seed_for
from schemas.records import Fingerprint, FrameRef, LedgerEntry, Updated
from tasks.run import Run

UPDATE_VERSION = 2
"""Declared version of the update: bump it when equal inputs give other weights."""
TRAIN_PRM_VERSION = 2
"""The same of the implicit PRM's training."""
REPLAYED = {"train_prm": TRAIN_PRM_VERSION, "update": UPDATE_VERSION}
"""Stages whose output is memory, in the order of an iteration."""
INPUTS = {
    "train_prm": {"sample", "generate", "logprobs", "verify"},
    "update": {"sample", "generate", "logprobs", "values", "advantage"},
}
"""The frames that each of them rests on: all of the iteration's, of these stages."""


def update_request(run: Run, updated: Updated, *, off_policy: bool = False) -> Update:
    """What the engine is asked for to make `updated`, from the inputs that its record keeps."""
    iteration = updated.iteration
    config, by_stage = run.configs(iteration), _by_stage(updated)
    critic = config.critic_settings
    return Update(
        prompts=run.locals(by_stage["sample"]),
        rollouts=run.locals(by_stage["generate"]),
        advantages=run.local(by_stage["advantage"][0]),
        logprobs=run.locals(by_stage.get("logprobs", [])),
        algorithm=_algorithm(run, iteration),
        optimizer=config.optimizer,
        temperature=config.sampling.temperature,
        seed=seed_for(config.seed, stage="update", iteration=iteration),
        off_policy=off_policy,
        critic=critic and CriticUpdate(optimizer=critic.optimizer, values=run.locals(by_stage["values"])),
        train_policy=critic is None or iteration >= critic.warmup_iterations,
    )


def train_prm_request(run: Run, updated: Updated) -> TrainPrm:
    """The same for the implicit PRM."""
    iteration = updated.iteration
    config, by_stage = run.configs(iteration), _by_stage(updated)
    settings, algorithm = config.prm_settings, config.algorithm
    assert settings is not None, "a record of train_prm comes from a run with an implicit PRM"
    assert updated.groups is not None, "and names the groups that it was trained on"
    return TrainPrm(
        prompts=run.locals(by_stage["sample"]),
        rollouts=run.locals(by_stage["generate"]),
        outcomes=run.locals(by_stage["verify"]),
        logprobs=run.locals(by_stage["logprobs"]),
        reference="ref_logprobs" if algorithm.prm_reference else "old_logprobs",
        groups=updated.groups,
        implicit_prm=algorithm.implicit_prm,
        mini_batch_size=algorithm.ppo_mini_batch_size,
        optimizer=settings.optimizer,
        temperature=config.sampling.temperature,
        seed=seed_for(config.seed, stage="train_prm", iteration=iteration),
    )


def recorded(run: Run, version: int) -> list[Updated]:
    """The records of what took the models from `version` to the next, in order."""
    pending = [made for made in run.pending if made.iteration == version]
    if len(run.commits) <= version + 1:
        return pending
    entries = run.commits[version + 1].entries
    inputs = [made.frame_ref for made in entries if made.path is not None]
    return [_record(run, entry, inputs) for name in REPLAYED for entry in entries if entry.stage == name]


def _record(run: Run, entry: LedgerEntry, inputs: list[FrameRef]) -> Updated:
    update = run.store.recorded_update(entry.stage, entry.iteration, entry.key)
    wanted = [ref for ref in inputs if ref.stage in INPUTS[entry.stage]]
    if update is not None and LedgerEntry.of(update) == entry and _same(update.inputs, wanted):
        return update
    raise StoreError(
        f"The record of iteration {entry.iteration}'s {entry.stage} ({entry.stage}-0000-{entry.key[:16]}.json) is "
        "missing or not what was committed, so it cannot be replayed. Restore it from a copy of the run directory, or "
        "start a new run."
    )


def _same(inputs: Sequence[FrameRef], committed: Sequence[FrameRef]) -> bool:
    """Whether these are all that is committed, each stage's shards in their order: others would give other weights."""
    one, other = ({stage: _of(stage, refs) for stage in {ref.stage for ref in refs}} for refs in (inputs, committed))
    return one == other


def _of(stage: str, refs: Sequence[FrameRef]) -> list[FrameRef]:
    return [ref for ref in refs if ref.stage == stage]


def _by_stage(updated: Updated) -> dict[str, list[FrameRef]]:
    by_stage: dict[str, list[FrameRef]] = {}
    for ref in updated.inputs:
        by_stage.setdefault(ref.stage, []).append(ref)
    return by_stage


def _algorithm(run: Run, iteration: int) -> Algorithm:
    """The iteration's algorithm, with the KL coefficient that a controller had come to."""
    algorithm, coef = run.configs(iteration).algorithm, run.commits[iteration].state.kl_coef
    return algorithm if coef is None or not algorithm.use_kl_loss else replace(algorithm, kl_loss_coef=coef)


def replay(run: Run, update: Updated, *, off_policy: bool) -> Fingerprint:
    """Redo `update` on the engine, which holds the state before it; returns what it now holds.

    Raises StoreError if the update was made by another declared version of the code.
    """
    if update.version != REPLAYED[update.stage]:
        raise StoreError(
            f"Iteration {update.iteration} was updated by version {update.version} of the {update.stage} stage; this "
            f"is version {REPLAYED[update.stage]}, which computes other weights. Resume with the papo release that "
            "made it until its next checkpoint, or start a new run from an export."
        )
    run.reporter.message(f"Replaying the {update.stage} of iteration {update.iteration} from its stored rollouts.")
    run.journal.event("replayed", iteration=update.iteration, stage=update.stage, key=update.key)
    if update.stage == "train_prm":
        result = run.engine.train_prm(train_prm_request(run, update), run.progress)
    else:
        result = run.engine.update(update_request(run, update, off_policy=off_policy), run.progress)
    return of_engine(result.fingerprint)


def of_engine(fingerprint: requests.Fingerprint) -> Fingerprint:
    """An engine's answer as a record."""
    return Fingerprint.model_validate(asdict(fingerprint))
