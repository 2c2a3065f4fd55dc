"""The client of OpenAI-compatible chat endpoints: many questions at once, each answered or failed within its limits.

An endpoint that is away, hangs, drips, floods or answers something else is found out by its limits and gives failures,
never an exception. Imported only where a run has a judge: it needs httpx.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import httpx

from papo.judges.answers import Failed, reply_text, retry_after
from papo.judges.asking import Ask, EndpointSettings, Failure, Progress, Reply
from papo.judges.cache import ReplyCache
from papo.judges.loop import run_apart

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between two attempts: doubled each time, and more where the endpoint says so."""
GIVEN_UP_AFTER = 3
"""Answers in a row without which the rest of a batch is not tried: their endpoints are away."""


@dataclass
class _Endpoint:
    url: str
    turns: asyncio.Semaphore
    load: int = 0
    failures: int = 0
    """In a row."""
    rests_until: float = 0.0


@dataclass
class _Batch:
    http: httpx.AsyncClient
    endpoints: list[_Endpoint]
    ends_at: float
    replies: dict[str, Reply] = field(default_factory=dict[str, Reply])
    failed_in_row: int = 0
    last_reason: str = ""

    def least_loaded(self, now: float) -> _Endpoint:
        """One that does not rest after a failure, where there is one."""
        return min(self.endpoints, key=lambda each: (each.rests_until > now, each.load, each.failures))


class JudgeClient:
    """Asks the endpoints of one judge, the least loaded first. Safe to use by several threads.

    `api_key` goes into one header and nowhere else. `first_pause`: seconds before the second attempt.
    """

    def __init__(
        self, settings: EndpointSettings, *, api_key: str | None = None, first_pause: float = FIRST_PAUSE
    ) -> None:
        self.settings = settings
        self._key = api_key
        self._first_pause = first_pause
        self._cache = ReplyCache()

    def ask_all(self, asks: Sequence[Ask], progress: Progress | None = None) -> list[Reply]:
        """One reply a question, in order, after `batch_seconds` at the latest. Equal questions are asked once."""
        replies = {ask.sha256: Reply(text=text) for ask in asks if (text := self._cache.get(ask)) is not None}
        wanted = {ask.sha256: ask for ask in asks if ask.sha256 not in replies}
        done = len(replies)

        def tick() -> None:
            if progress is not None:
                progress(len(replies), done + len(wanted))

        if wanted:
            run_apart(self._answers(list(wanted.values()), replies), tick=tick)
        tick()
        for key, ask in wanted.items():
            text = replies[key].text
            if text is not None:
                self._cache.put(ask, text)
        return [replies[ask.sha256] for ask in asks]

    def probe(self, ask: Ask) -> Mapping[str, Reply]:
        """What each URL says to `ask`, by one request each; nothing is remembered."""
        return run_apart(self._probed(ask))

    async def _answers(self, asks: Sequence[Ask], replies: dict[str, Reply]) -> None:
        settings, now = self.settings, asyncio.get_running_loop().time()
        async with self._http() as http:
            endpoints = [_Endpoint(url, asyncio.Semaphore(settings.concurrency)) for url in settings.urls]
            batch = _Batch(http, endpoints, ends_at=now + settings.batch_seconds, replies=replies)
            turns = asyncio.Semaphore(settings.concurrency * len(settings.urls))
            await asyncio.gather(*(self._in_turn(ask, batch, turns) for ask in asks))

    async def _in_turn(self, ask: Ask, batch: _Batch, turns: asyncio.Semaphore) -> None:
        async with turns:
            try:
                batch.replies[ask.sha256] = Reply(text=await self._answer(ask, batch))
                batch.failed_in_row = 0
            except Failed as failed:
                batch.replies[ask.sha256] = Reply(failure=Failure(cause=failed.cause, reason=failed.reason))
                if failed.cause == "endpoint":
                    batch.failed_in_row += 1
                    batch.last_reason = failed.reason

    async def _answer(self, ask: Ask, batch: _Batch) -> str:
        """The text. Raises Failed when attempts or seconds are used up, or another attempt would not help."""
        left, clock, last = self.settings.answer_seconds, asyncio.get_running_loop().time, None
        for attempt in range(self.settings.attempts):
            if attempt == 0 and batch.failed_in_row >= GIVEN_UP_AFTER:
                raise Failed("untried", f"not asked, since others failed: {batch.last_reason}")
            endpoint = batch.least_loaded(clock())
            endpoint.load += 1
            try:
                async with asyncio.timeout_at(batch.ends_at):
                    await endpoint.turns.acquire()
            except TimeoutError:
                endpoint.load -= 1
                raise last or Failed("untried", f"{self._batch_limit()} was over") from None
            began = clock()
            try:
                if began >= batch.ends_at:
                    raise last or Failed("untried", f"{self._batch_limit()} was over")
                return await self._timed(ask, endpoint, batch, seconds=min(left, batch.ends_at - began))
            except Failed as failed:
                last = failed
            finally:
                endpoint.load -= 1
                endpoint.turns.release()
            pause = self._pause(attempt, last)
            left -= clock() - began + pause
            elsewhere = last.cause == "endpoint" and len(batch.endpoints) > 1
            if not (last.may_pass or elsewhere) or left <= 0 or clock() + pause >= batch.ends_at:
                raise last
            if attempt + 1 < self.settings.attempts:
                await asyncio.sleep(pause)
        assert last is not None, "there is at least one attempt"
        raise last

    async def _timed(self, ask: Ask, endpoint: _Endpoint, batch: _Batch, *, seconds: float) -> str:
        try:
            async with asyncio.timeout(seconds):
                text = await self._request(ask, endpoint.url, batch.http)
        except TimeoutError:
            failed = Failed("endpoint", f"{endpoint.url} gave no answer within {seconds:.3g} s")
        except Failed as found:
            failed = found
        else:
            endpoint.failures = 0
            return text
        if failed.cause == "endpoint":
            endpoint.failures += 1
            rest = max(failed.after or 0.0, self._first_pause * 2.0**endpoint.failures)
            endpoint.rests_until = asyncio.get_running_loop().time() + min(rest, LONGEST_PAUSE)
        raise failed

    async def _request(self, ask: Ask, url: str, http: httpx.AsyncClient) -> str:
        """Raises Failed; has no limit on time."""
        try:
            async with http.stream("POST", f"{url.rstrip('/')}/chat/completions", content=ask.content) as response:
                body = bytearray()
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > self.settings.longest_reply:
                        text = f"{url} answered with more than {self.settings.longest_reply} bytes, not read on"
                        raise Failed("endpoint", text, may_pass=False)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, RuntimeError) as error:
            said = self._scrubbed(f"{type(error).__name__} {error}".strip())
            raise Failed("endpoint", f"{url}: {said}") from None
        try:
            return reply_text(response, bytes(body), url=url)
        except Failed as failed:
            failed.after = retry_after(response)
            failed.reason = self._scrubbed(failed.reason)
            raise

    async def _probed(self, ask: Ask) -> dict[str, Reply]:
        async def one(url: str, http: httpx.AsyncClient) -> Reply:
            try:
                async with asyncio.timeout(self.settings.answer_seconds):
                    return Reply(text=await self._request(ask, url, http))
            except TimeoutError:
                reason = f"{url} gave no answer within {self.settings.answer_seconds:.3g} s"
                return Reply(failure=Failure(cause="endpoint", reason=reason))
            except Failed as failed:
                return Reply(failure=Failure(cause=failed.cause, reason=failed.reason))

        async with self._http() as http:
            urls = self.settings.urls
            return dict(zip(urls, await asyncio.gather(*(one(url, http) for url in urls)), strict=True))

    def _pause(self, attempt: int, failed: Failed) -> float:
        """Before the next attempt: doubled each time with jitter, as long as the endpoint asks for, within a bound."""
        usual = self._first_pause * 2.0**attempt * random.uniform(0.75, 1.25)
        return min(max(usual, failed.after or 0.0), LONGEST_PAUSE)

    def _batch_limit(self) -> str:
        return f"batch_seconds ({self.settings.batch_seconds:.3g} s)"

    def _http(self) -> httpx.AsyncClient:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        count = self.settings.concurrency * len(self.settings.urls)
        return httpx.AsyncClient(
            headers=headers,
            # Limits are kept around whole requests: httpx's own begin anew with each byte that drips in.
            timeout=None,
            limits=httpx.Limits(max_connections=count, max_keepalive_connections=count),
            follow_redirects=False,
            # The endpoints are named by address: no proxy or password file of the environment may stand between.
            trust_env=False,
        )

    def _scrubbed(self, text: str) -> str:
        return text if self._key is None else text.replace(self._key, "(the key)")
