"""What a judge is asked and what comes back. A judge that fails is data: a reply without text, with its reason."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, Protocol

Progress = Callable[[int, int], None]
"""Called with (answered, asked)."""
Cause = Literal["endpoint", "request", "untried"]
"""endpoint: it is away, busy or answers what is no answer; another try may do better. request: it would answer this
very question the same way again (refused, empty, cut off). untried: no time was left, or no endpoint that answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question: everything that the answer is a function of."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float = 0.0

    @property
    def content(self) -> bytes:
        """The request's body, with every setting spelled out: an endpoint's defaults cannot leak."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": message.role, "content": message.content} for message in self.messages],
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": 1.0,
            "n": 1,
            "stream": False,
        }
        return json.dumps(body, sort_keys=True).encode("ascii")

    @property
    def sha256(self) -> str:
        return sha256(self.content).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    cause: Cause
    reason: str
    """In words, with the URL, never longer than a few lines and without any key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a judge wrote, or why there is nothing."""

    text: str | None = None
    failure: Failure | None = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.failure is None):
            raise ValueError("a reply has a text or a failure, and not both.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """Where a judge is and how long it may take."""

    urls: tuple[str, ...]
    """Each up to and including /v1."""
    concurrency: int = 8
    """Requests at a time to one URL."""
    attempts: int = 4
    """Requests for one answer, the first included."""
    answer_seconds: float = 60.0
    """Limit on one answer, over all its attempts and the pauses between them."""
    batch_seconds: float = 1800.0
    """Limit on all answers that are asked for together."""
    longest_reply: int = 1_000_000
    """Bytes of a response, above which it is not read on."""


class Judge(Protocol):
    """Whoever answers a run's questions."""

    def ask_all(self, asks: Sequence[Ask], progress: Progress | None = None) -> list[Reply]:
        """One reply a question, in order, whatever happens."""
        ...

    def probe(self, ask: Ask) -> Mapping[str, Reply]:
        """What each URL says to `ask` at the first try, nothing remembered."""
        ...
