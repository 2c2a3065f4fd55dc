"""checkpoint: publish the whole state, where the run's rule says so."""

from schemas.records import IterationState
from tasks.checkpoints import has_checkpoint, save_checkpoint
from tasks.holding import using
from tasks.run import Run
from tasks.stage import stage


@stage(version=1)
def checkpoint(run: Run, state: IterationState) -> None:
    """A checkpoint of `state`; nothing where there is one already."""
    if not has_checkpoint(run, state):
        using(run, state, lambda _: save_checkpoint(run, state))
