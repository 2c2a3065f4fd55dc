"""What an endpoint's response says: a text, or why it is none and whether another attempt may do better."""

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

import httpx

from papo.judges.asking import Cause

OK, REDIRECT, REQUEST_TIMEOUT, TOO_MANY, SERVER_ERROR = 200, 300, 408, 429, 500
OF_THE_REQUEST = (400, 413, 422)
"""Statuses that say something of this very question: too long, or refused for what stands in it."""
SHOWN = 200


class Failed(Exception):
    """An attempt gave no text."""

    def __init__(self, cause: Cause, reason: str, *, may_pass: bool = True, after: float | None = None) -> None:
        super().__init__(reason)
        self.cause: Cause = cause
        self.reason = reason
        self.may_pass = may_pass and cause == "endpoint"
        """Whether another attempt may do better."""
        self.after = after
        """Seconds that the endpoint asks to be left alone for."""


def reply_text(response: httpx.Response, body: bytes, *, url: str) -> str:
    """The text of a response whose body has been read. Raises Failed."""
    status = response.status_code
    if status != OK:
        raise _refused(status, body, url=url)
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise Failed("endpoint", f"{url} packs its answers though it is asked not to", may_pass=False)
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise Failed("endpoint", f"{url} answered with something that is no JSON: {_shown(body)}") from None
    choices = cast("Any", answer).get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or len(cast("list[Any]", choices)) != 1:
        count = len(cast("list[Any]", choices)) if isinstance(choices, list) else "no"
        raise Failed("endpoint", f"{url} answered with {count} choices instead of one")
    return _of_choice(cast("list[Any]", choices)[0], url=url)


def retry_after(response: httpx.Response) -> float | None:
    """Seconds of a Retry-After header, which may also be a date; None without one that can be read."""
    value = response.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit() and len(value) < 10:
        return float(value)
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


def _refused(status: int, body: bytes, *, url: str) -> Failed:
    if status in OF_THE_REQUEST:
        return Failed("request", f"{url} refused the question ({status}): {_shown(body)}")
    if REDIRECT <= status < OF_THE_REQUEST[0]:
        return Failed("endpoint", f"{url} answered {status}: redirects are not followed", may_pass=False)
    may_pass = status >= SERVER_ERROR or status in (REQUEST_TIMEOUT, TOO_MANY)
    return Failed("endpoint", f"{url} answered {status}: {_shown(body)}", may_pass=may_pass)


def _of_choice(choice: Any, *, url: str) -> str:
    held = cast("dict[str, Any]", choice) if isinstance(choice, dict) else {}
    message = held.get("message")
    content = cast("dict[str, Any]", message).get("content") if isinstance(message, dict) else None
    ended = held.get("finish_reason")
    if ended in ("length", "content_filter"):
        raise Failed("request", f"{url} ended its answer with finish_reason {ended}")
    if content is not None and not isinstance(content, str):
        raise Failed("endpoint", f"{url} answered with content that is no text")
    if not content or not content.strip():
        raise Failed("request", f"{url} answered with nothing")
    # Half a surrogate pair is legal JSON, but no text that a frame can hold.
    return content.encode("utf-8", "replace").decode("utf-8")


def _shown(body: bytes) -> str:
    text = " ".join(body[: 4 * SHOWN].decode("utf-8", "replace").split())
    return ascii(text[:SHOWN])
