"""What crosses the border to a rank: one JSON object a line, built and checked by pydantic, never pickled."""

import json
import socket
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from papo.engines import requests, settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One verb for every rank. `request` is the JSON form of the dataclass that VERBS names for it."""

    kind: Literal["command"] = "command"
    verb: str
    request: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Progress of the running verb, from rank 0."""

    kind: Literal["tick"] = "tick"
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A verb that ended well; `value` is null on every rank but 0."""

    kind: Literal["answer"] = "answer"
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A verb that raised; `error` is a class name of papo.errors."""

    kind: Literal["failure"] = "failure"
    error: str
    message: str


Message = Command | Tick | Answer | Failure

VERBS: dict[str, tuple[Any, Any]] = {
    "setup": (settings.EngineSettings, dict[str, str]),
    "create": (requests.CreateModel, type(None)),
    "tokenize": (requests.Tokenize, type(None)),
    "tokenize_pairs": (requests.TokenizePairs, type(None)),
    "open": (requests.Open, requests.Fingerprint),
    "generate": (requests.Generate, type(None)),
    "end_ids": (type(None), tuple[int, ...]),
    "decode": (requests.Decode, type(None)),
    "logprobs": (requests.Logprobs, type(None)),
    "values": (requests.Values, type(None)),
    "score_texts": (requests.ScoreTexts, type(None)),
    "train_prm": (requests.TrainPrm, requests.UpdateResult),
    "update": (requests.Update, requests.UpdateResult),
    "sft": (requests.SftSteps, requests.SftResult),
    "save": (str, type(None)),
    "export": (str, type(None)),
    "export_adapter": (str, type(None)),
    "close": (type(None), type(None)),
}
"""Every verb with the types of its request and its answer."""


@cache
def _adapter(kind: Any) -> Any:
    return TypeAdapter(kind)


def to_json(kind: Any, value: Any) -> Any:
    """The JSON form of `value`, which is of type `kind`."""
    return _adapter(kind).dump_python(value, mode="json")


def from_json(kind: Any, form: Any) -> Any:
    """The value of type `kind` whose JSON form is `form`; pydantic's error names the field that does not fit."""
    return _adapter(kind).validate_python(form)


class Channel:
    """One end of the socket between the host and a rank."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._received = bytearray()

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: Message) -> None:
        self._end.sendall(json.dumps(to_json(type(message), message), separators=(",", ":")).encode() + b"\n")

    def receive(self) -> Message | None:
        """The next whole message, waiting for it; None when the other end is gone."""
        while (line := self._take_line()) is None:
            data = self._end.recv(1 << 16)
            if not data:
                return None
            self._received += data
        return _adapter(Message).validate_python(json.loads(line))

    @property
    def has_message(self) -> bool:
        """Whether `receive` returns without reading from the socket."""
        return b"\n" in self._received

    def close(self) -> None:
        self._end.close()

    def _take_line(self) -> bytes | None:
        end = self._received.find(b"\n")
        if end < 0:
            return None
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line
