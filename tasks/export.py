"""export: a version of the policy as a Hugging Face folder."""

import os
from pathlib import Path

from papo.errors import DataError
from schemas.canonical import canonical_json
from tasks.disk import LocalDisk
from tasks.holding import EXPORT_RECORD, using
from tasks.publish import publish_folder, temporary
from tasks.run import Run


def export_version(run: Run, version: int | None, output: Path, *, adapter: bool = False) -> Path:
    """Write the policy after `version` iterations (None: the newest) to the new folder `output`.

    `adapter`: its adapter alone, where it has one; otherwise that is merged into the weights.
    A version between checkpoints is replayed from its stored rollouts. The folder appears whole or not at all.
    Raises DataError if there is no such version, or if `output` is there already.
    """
    wanted = run.head.state.iteration if version is None else version
    if not 0 <= wanted < len(run.commits):
        raise DataError(f"Run {run.run_id} has versions 0 to {len(run.commits) - 1}, not {wanted}.")
    if output.exists():
        raise DataError(f"{output} is there already. Choose another folder, or remove it.")
    output.parent.mkdir(parents=True, exist_ok=True)
    disk = LocalDisk(output.parent)
    state = run.commits[wanted].state
    staged = temporary(disk, output.name)
    disk.make_folder(staged)
    try:
        using(run, state, lambda engine: (engine.export_adapter if adapter else engine.export)(disk.local(staged)))
        record = {"run_id": run.run_id, "version": wanted, "policy_sha256": state.policy.fingerprint.policy_sha256}
        disk.write(
            os.path.join(staged, EXPORT_RECORD), canonical_json({**record, "commit": run.commits[wanted].sha256})
        )
        publish_folder(disk, staged, output.name)
    finally:
        if disk.exists(staged):
            disk.remove_tree(staged)
    run.journal.event("exported", version=wanted, folder=str(output))
    return output
