"""What a run rests on, held to what was recorded of it: at each opening, before anything is built upon it.

The chain of commits, the ledger and run.yaml are checked by those who read them, a checkpoint where it is loaded, a
record of an update where it is replayed. Here are what every later iteration rests on, and what is only looked for.
"""

from papo.errors import Damaged
from tasks.disk import Disk
from tasks.history import History
from tasks.run import MODEL
from tasks.runfile import RunFile
from tasks.store import RunStore, folder_of
from tasks.stored import StoredCommit

SHOWN = 3


def check_genesis(store: RunStore, commits: History) -> None:
    """Raises Damaged unless the prepared data and the held-out prompts are those that were published."""
    for entry in commits[0].entries if len(commits) else ():
        if entry.path is not None and entry.stage != "evaluate":
            store.verify(entry.frame_ref)


def check_model(disk: Disk, run_file: RunFile) -> None:
    """Raises Damaged unless config and tokenizer of the policy are those that the run has kept."""
    for name in sorted(run_file.kept.keys() | set(disk.walk(MODEL) if run_file.kept else ())):
        path = f"{MODEL}/{name}"
        if not disk.exists(path):
            raise Damaged(f"{path} is missing. {_WAY_OUT}")
        if name not in run_file.kept:
            raise Damaged(f"{path} was not there when the run began: remove it, or start a new run.")
        if disk.digest(path)[0] != run_file.kept[name]:
            raise Damaged(f"{path} is not what the run has kept of its model. {_WAY_OUT}")


class Lookout:
    """Hears of each commit of the chain and looks whether its artifacts are there. Their bytes are read by whoever
    needs them; of an old iteration nobody does."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.missing: list[str] = []

    def see(self, commit: StoredCommit) -> None:
        """Note what is gone of an iteration, by a look at its folder."""
        folder = folder_of(commit.iteration)
        there = set(self._disk.names(folder))
        paths = [entry["path"] for entry in commit.entries if entry.get("path")]
        self.missing += [path for path in paths if path.removeprefix(f"{folder}/") not in there]

    @property
    def told(self) -> str | None:
        """A line about what is gone; None where nothing is."""
        if not self.missing:
            return None
        shown = ", ".join(self.missing[:SHOWN]) + (", …" if len(self.missing) > SHOWN else "")
        return f"{len(self.missing)} committed artifacts are missing: {shown}"


_WAY_OUT = "It tokenises and decodes every rollout: restore it from a copy of the run directory, or start a new run."
