"""Checkpoints: the whole state, published at once, kept by rule. Operational: when they are made changes no hash."""

import math
import os
from bisect import bisect_right
from dataclasses import dataclass

from pydantic import ValidationError

from papo.errors import DiskFull, EngineError
from papo.version import papo_version
from schemas.canonical import canonical_json
from schemas.records import CheckpointManifest, IterationState
from tasks.publish import ensure_folder, publish_folder, temporary
from tasks.run import Run

FOLDER = "checkpoints"
MANIFEST = "manifest.json"
_COST_LIMIT = 0.05
_SPACE_FACTOR = 1.1


@dataclass(frozen=True)
class Checkpoint:
    version: int
    folder: str
    manifest: CheckpointManifest


def checkpoint_due(run: Run, version: int) -> bool:
    """Whether it is time: every k-th version, k being the smallest whose saving costs under 5 % if it is automatic."""
    every = run.configs(max(version - 1, 0)).checkpoint.every
    newest = max(_versions(run), default=None)
    if newest is None or version == 0:
        return newest is None
    if every == "auto":
        iteration_seconds = run.iteration_seconds or 1.0
        every = max(1, math.ceil(run.save_seconds / (_COST_LIMIT * iteration_seconds)))
    return version - newest >= every


def has_checkpoint(run: Run, state: IterationState) -> bool:
    """Whether `state` is published as a whole checkpoint (by its manifest; its files are checked when it is loaded)."""
    manifest = _manifest(run, f"{FOLDER}/{state.policy.version:05d}")
    return manifest is not None and manifest.state == state


def save_checkpoint(run: Run, state: IterationState) -> None:
    """Publish `state`, which the engine holds. Then remove what no rule keeps.

    Raises DiskFull, with nothing half-written left, if there is no room; earlier checkpoints are never touched before.
    """
    version = state.policy.version
    path = f"{FOLDER}/{version:05d}"
    _check_space(run)
    ensure_folder(run.disk, FOLDER)
    staged = temporary(run.disk, path)
    started = run.clock.elapsed()
    if run.disk.exists(staged):
        run.disk.remove_tree(staged)
    run.disk.make_folder(staged)
    try:
        run.engine.save(run.disk.local(staged))
        _write_manifest(run, staged, state)
        if run.disk.exists(path) and not has_checkpoint(run, state):
            # A folder without a whole manifest: what a crash left of a removal, or somebody's damage.
            run.disk.remove_tree(path)
        publish_folder(run.disk, staged, path)
    except (DiskFull, EngineError):
        run.disk.remove_tree(staged)
        raise
    run.save_seconds = run.clock.elapsed() - started
    run.journal.event("checkpoint", version=version, seconds=run.save_seconds)
    _retain(run)


def newest_checkpoint(run: Run, *, at_most: int) -> Checkpoint | None:
    """The newest checkpoint, up to a version, that is whole and belongs to this chain of commits."""
    for version in sorted(_versions(run), reverse=True):
        folder = f"{FOLDER}/{version:05d}"
        manifest = _manifest(run, folder)
        if version > at_most or manifest is None:
            continue
        fault = _fault(run, folder, manifest)
        if fault is None:
            return Checkpoint(version=version, folder=folder, manifest=manifest)
        run.journal.event("checkpoint_refused", version=version, reason=fault)
        run.reporter.message(f"{folder} is not used: {fault}. Trying an older one.")
    return None


def newest_manifest(run: Run) -> CheckpointManifest | None:
    """What the newest checkpoint says it holds; its files are checked when it is loaded."""
    manifests = (_manifest(run, f"{FOLDER}/{version:05d}") for version in sorted(_versions(run), reverse=True))
    return next((manifest for manifest in manifests if manifest is not None), None)


def _write_manifest(run: Run, staged: str, state: IterationState) -> None:
    files: dict[str, tuple[str, int]] = {}
    for name in run.disk.walk(staged):
        files[name] = run.disk.digest(os.path.join(staged, name))
    manifest = CheckpointManifest(
        version=state.policy.version,
        state=state,
        commit_sha256=run.commits.sha256(-1),
        files=files,
        accuracy=_accuracies(run, [state.policy.version])[state.policy.version],
        lineage=run.lineage,
        environment={"papo": papo_version(), **run.engine.environment},
    )
    run.disk.write(os.path.join(staged, MANIFEST), canonical_json(manifest.model_dump(mode="json")))


def _retain(run: Run) -> None:
    """Remove checkpoints that are not the newest, the best, version 0 or an every-Nth one. Manifest first: a removal
    that is cut short leaves a folder that nobody takes for a checkpoint, and that the next one here completes."""
    keep_every = run.configs(max(run.head.iteration, 0)).checkpoint.keep_every
    there = _versions(run)
    whole = [version for version in there if run.disk.exists(f"{FOLDER}/{version:05d}/{MANIFEST}")]
    # By the commits and not by what a manifest says of itself: it is not in the chain.
    known = _accuracies(run, whole)
    for version in sorted(set(known) - kept_versions(known, keep_every=keep_every)):
        folder = f"{FOLDER}/{version:05d}"
        run.disk.remove(f"{folder}/{MANIFEST}")
        run.disk.sync_folder(folder)
        run.disk.remove_tree(folder)
    for folder in (f"{FOLDER}/{version:05d}" for version in there):
        if run.disk.exists(folder) and not run.disk.exists(f"{folder}/{MANIFEST}"):
            run.disk.remove_tree(folder)


def kept_versions(accuracies: dict[int, float | None], *, keep_every: int | None) -> set[int]:
    """Version 0, the newest, the best by accuracy (a tie goes to the newer) and every `keep_every`-th."""
    kept = {0, max(accuracies)} if accuracies else set[int]()
    scored = {version: accuracy for version, accuracy in accuracies.items() if accuracy is not None}
    if scored:
        kept.add(max(scored, key=lambda version: (scored[version], version)))
    if keep_every is not None:
        kept |= {version for version in accuracies if version % keep_every == 0}
    return kept


def _versions(run: Run) -> list[int]:
    """Numbers, not names, are compared: 9 comes before 10."""
    return [int(name) for name in run.disk.names(FOLDER) if name.isdecimal()]


def _manifest(run: Run, folder: str) -> CheckpointManifest | None:
    path = f"{folder}/{MANIFEST}"
    if not run.disk.exists(path):
        return None
    try:
        return CheckpointManifest.model_validate_json(run.disk.read(path))
    except ValidationError:
        return None


def _fault(run: Run, folder: str, manifest: CheckpointManifest) -> str | None:
    commit = run.commits.find(manifest.commit_sha256)
    if commit is None:
        return "it was made after a commit that is not in this run"
    if manifest.lineage == commit.lineage and manifest.state != commit.state:
        return "its manifest names another state than the commit that it was made after"
    others = sorted(set(run.disk.walk(folder)) - manifest.files.keys() - {MANIFEST})
    if others:
        return f"{others[0]} was not saved with it"
    for name, (sha256, size) in manifest.files.items():
        path = os.path.join(folder, name)
        if not run.disk.exists(path):
            return f"{name} is missing"
        now = run.disk.digest(path)
        if now != (sha256, size):
            return f"{name} is not what was saved ({now[1]} bytes, {size} then)"
    return None


def _accuracies(run: Run, versions: list[int]) -> dict[int, float | None]:
    """For each version the latest accuracy that a verifier had found by then."""
    found = [one for one in run.commits.evaluated if one.name == "accuracy"]
    before = {version: bisect_right(found, version, key=lambda one: one.index) for version in versions}
    return {version: found[count - 1].accuracy if count else None for version, count in before.items()}


def _check_space(run: Run) -> None:
    newest = newest_manifest(run)
    size = 0 if newest is None else sum(size for _, size in newest.files.values())
    needed, free = int(size * _SPACE_FACTOR), run.disk.free()
    if free < needed:
        raise DiskFull(
            f"A checkpoint needs about {needed:,} bytes but {free:,} are free where the run is. Everything published "
            "so far is safe: free some space, then resume the run."
        )
