"""How fast a run's stages are, and so when its engine counts as stalled."""

from collections import defaultdict, deque
from statistics import median

from papo.spelling import metrics_of
from tasks.disk import Disk
from tasks.journal import METRICS

REMEMBERED = 50
"""Iterations that count: a run gets slower as its completions get longer."""
SLOWER = 3.0
"""How many times its usual time a stage may take without a sign of progress: a busy machine is that much slower."""
TAIL = 1 << 20
"""Bytes of the journal that are looked at."""
_PREFIX = "seconds/"


class Pace:
    """The seconds that each stage took in the last iterations."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED))

    @classmethod
    def read(cls, disk: Disk) -> "Pace":
        """What the run's own journal says."""
        pace = cls()
        for line in metrics_of(disk.read_tail(METRICS, TAIL)) if disk.exists(METRICS) else ():
            seconds = {name: spent for name, spent in line.get("values", {}).items() if name.startswith(_PREFIX)}
            pace.note({name.removeprefix(_PREFIX): float(spent) for name, spent in seconds.items() if spent})
        return pace

    def note(self, seconds: dict[str, float]) -> None:
        """An iteration's seconds, by stage."""
        for stage, spent in seconds.items():
            self._seconds[stage].append(spent)

    def silence_limit(self, stage: str, *, floor: float) -> float:
        """Seconds without progress and without work after which the engine counts as stalled in `stage`. (A median: a
        stage that has once been held up does not get more time from then on.)"""
        usual = median(self._seconds[stage]) if self._seconds[stage] else 0.0
        return max(floor, SLOWER * usual)
