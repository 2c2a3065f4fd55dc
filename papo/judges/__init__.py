"""Judges: language models behind OpenAI-compatible chat endpoints, asked with deadlines, retries and a cache.

The client itself is in `papo.judges.client`, which imports httpx: only where a run has a judge.
"""

from papo.judges.asking import Ask, Cause, EndpointSettings, Failure, Judge, Message, Progress, Reply
from papo.judges.cache import ReplyCache

__all__ = ["Ask", "Cause", "EndpointSettings", "Failure", "Judge", "Message", "Progress", "Reply", "ReplyCache"]
