"""Replies by the content of what was asked, in memory: an equal question is asked once while the process lives.

Nothing of it is on disk. What a judge said is kept where it counts, in the frames; a stage that is made again after a
crash may ask again, and its frame records whatever is answered then.
"""

from collections import OrderedDict
from threading import Lock

from papo.judges.asking import Ask


class ReplyCache:
    """The newest replies, up to `characters` of text. Safe to use by several threads."""

    def __init__(self, characters: int = 32_000_000) -> None:
        self._limit = characters
        self._held = 0
        self._lock = Lock()
        self._texts: OrderedDict[str, str] = OrderedDict()

    def get(self, ask: Ask) -> str | None:
        """The text, if an equal question was answered."""
        key = ask.sha256
        with self._lock:
            if key in self._texts:
                self._texts.move_to_end(key)
            return self._texts.get(key)

    def put(self, ask: Ask, text: str) -> None:
        """Keep an answer; the oldest ones go where there is no room."""
        key = ask.sha256
        with self._lock:
            self._held += len(text) - len(self._texts.pop(key, ""))
            self._texts[key] = text
            while self._held > self._limit:
                _, oldest = self._texts.popitem(last=False)
                self._held -= len(oldest)
