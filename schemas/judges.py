"""Judges as sections of the run config: where a language model answers, and what it is asked for."""

import re
from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, model_validator

from papo.judges import EndpointSettings
from papo.rewards import SecondOpinion
from schemas.section import OPERATIONAL, Section

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class JudgeEndpoint(Section):
    """OpenAI-compatible chat endpoints of one model."""

    urls: tuple[str, ...]
    """Each up to and including /v1; the least loaded one is asked. Redirects are not followed."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the API key, which is sent to the URLs and written nowhere."""
    concurrency: int = Field(default=8, ge=1, le=1024)
    """Requests at a time to one URL."""
    attempts: int = Field(default=4, ge=1, le=20)
    """Requests for one answer, the first included: after 429, 5xx and lost connections another, after a pause."""
    answer_seconds: float = Field(default=60.0, gt=0.0)
    """Limit on one answer, over all its attempts and the pauses between them."""
    batch_seconds: float = Field(default=1800.0, gt=0.0)
    """Limit on all answers of one shard."""

    @model_validator(mode="after")
    def _fits(self) -> "JudgeEndpoint":
        if not self.urls:
            raise ValueError("urls is an empty list: give the URL of an OpenAI-compatible server, up to and with /v1.")
        if len({url.rstrip("/") for url in self.urls}) != len(self.urls):
            raise ValueError("urls names a URL twice: concurrency says how much one may be asked at a time.")
        # What is meant for secret is not repeated in an error.
        if self.api_key_env is not None and not _VARIABLE.fullmatch(self.api_key_env):
            raise ValueError(
                "api_key_env is no name of an environment variable: export the key, and name the variable."
            )
        for url in self.urls:
            parts = _parsed(url)
            if self.api_key_env is not None and parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
                raise ValueError(f"{url} is not encrypted, so the key would be read by others: use https, or no key.")
        return self

    @property
    def settings(self) -> EndpointSettings:
        return EndpointSettings(
            urls=self.urls,
            concurrency=self.concurrency,
            attempts=self.attempts,
            answer_seconds=self.answer_seconds,
            batch_seconds=self.batch_seconds,
        )


class SecondOpinionConfig(Section):
    """A language model is asked about answers that the rules rejected, in training and evaluation alike. It can make
    them right and nothing else; its rows have judged_by llm. It sees question, reference and extracted answer."""

    model: str = Field(min_length=1)
    """As the endpoint calls it. It is asked at temperature 0."""
    endpoint: Annotated[JudgeEndpoint, OPERATIONAL]
    """Where it answers."""
    max_tokens: int = Field(default=256, ge=1)
    """Of a reply; a model that thinks aloud needs more. A reply that is cut off is no opinion."""
    longest_answer: int = Field(default=200, ge=1)
    """Characters of an extracted answer, above which nobody is asked: it stays wrong."""
    on_failure: Literal["pause", "rule", "undecided"] = "pause"
    """Where the endpoint fails. pause: wait for it, so that the run is what it would have been; after pause_seconds the
    run stops, to be resumed. rule: these rows stay wrong. undecided: they have no reward and status judge_failed."""
    pause_seconds: Annotated[float, OPERATIONAL] = Field(default=3600.0, ge=0.0)
    """How long to wait without any answer."""

    @property
    def opinion(self) -> SecondOpinion:
        """What is asked, and how a reply is read."""
        return SecondOpinion(model=self.model, max_tokens=self.max_tokens, longest_answer=self.longest_answer)


def _parsed(url: str) -> SplitResult:
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("urls has one with a password, a query or a fragment: give the key by api_key_env.")
    try:
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or not url.isascii() or any(letter.isspace() for letter in url):
        raise ValueError(f"{url!r} is no URL of a server: write http://HOST:PORT/v1.")
    return parts


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
