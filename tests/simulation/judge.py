"""A judge in memory: what it says is a function of what it is asked, unless a test has it away or changing its mind."""

from collections.abc import Mapping, Sequence

from papo.judges import Ask, Cause, Failure, Progress, Reply
from tests.unit.papo.judges.fake_judge import parts_of

URL = "http://judge/v1"


class ScriptedJudge:
    """Accepts the candidates 1 and 0.5."""

    def __init__(
        self, *, away: int = 0, chokes: int = 0, most: int = 10**6, cause: Cause = "endpoint", reason: str = "no"
    ) -> None:
        self.away = away
        """Calls of any kind that fail from now on."""
        self.chokes = chokes
        """Batches that fail from now on, though samples are answered."""
        self.most = most
        """Questions of a batch above which all of them fail."""
        self.cause: Cause = cause
        self.reason = reason
        self.asked: list[Ask] = []
        self.probed = 0
        self.accepts: tuple[str, ...] = ("1", "0.5")

    def ask_all(self, asks: Sequence[Ask], progress: Progress | None = None) -> list[Reply]:
        if self._is_away() or self.chokes or len(asks) > self.most:
            self.chokes = max(0, self.chokes - 1)
            return [self._failed() for _ in asks]
        self.asked += asks
        return [self._judged(ask) for ask in asks]

    def probe(self, ask: Ask) -> Mapping[str, Reply]:
        self.probed += 1
        return {URL: self._failed() if self._is_away() else self._judged(ask)}

    def _is_away(self) -> bool:
        was, self.away = self.away, max(0, self.away - 1)
        return was > 0

    def _judged(self, ask: Ask) -> Reply:
        candidate = parts_of(ask.messages[1].content)["candidate answer"]
        return Reply(text=f"I see {candidate}.\n{'EQUIVALENT' if candidate in self.accepts else 'DIFFERENT'}")

    def _failed(self) -> Reply:
        return Reply(failure=Failure(cause=self.cause, reason=f"{URL}: {self.reason}"))
