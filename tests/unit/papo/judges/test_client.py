"""BUG-071: whatever a judge's endpoint does, each answer ends within its limits, with a text or a reason."""

import asyncio
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import pytest

from papo.judges import Ask, EndpointSettings, Message, ReplyCache
from papo.judges.client import GIVEN_UP_AFTER, JudgeClient
from tests.unit.papo.judges import fake_judge
from tests.unit.papo.judges.fake_judge import FakeJudge, always, closed_port, completion, drip, first, send, serving

KEY = "sesame-open"
PROMPT = "Mark of this request: ===m===\n\n===m=== candidate answer\n{}\n===m=== end\n"


def ask(text: Any = "7") -> Ask:
    messages = (Message(role="system", content="Compare."), Message(role="user", content=PROMPT.format(text)))
    return Ask(model="judge", messages=messages, max_tokens=16)


def client(*urls: str, key: str | None = None, **limits: Any) -> JudgeClient:
    usual: dict[str, Any] = {"answer_seconds": 0.4, "batch_seconds": 5.0, "attempts": 2, "longest_reply": 100_000}
    return JudgeClient(EndpointSettings(urls=urls, **usual | limits), api_key=key, first_pause=0.01)


Fail = Callable[[BaseHTTPRequestHandler, int], bool]
FAILURES: dict[str, tuple[Callable[[FakeJudge], Fail], str]] = {
    "never answers": (fake_judge.silent, "no answer within"),
    "drips headers": (lambda judge: drip(judge, headers=True), "no answer within"),
    "drips its body": (lambda judge: drip(judge, headers=False), "no answer within"),
    "500": (lambda _: always(500, b"out of order"), "answered 500: 'out of order'"),
    "html": (lambda _: always(200, b"<html><body>Please log in</body></html>"), "no JSON: '<html>"),
    "no choices": (lambda _: always(200, b'{"object": "error"}'), "no choices instead of one"),
    "fewer rows": (lambda _: always(200, b'{"choices": []}'), "0 choices instead of one"),
    "a list": (lambda _: always(200, b"[1, 2]"), "no choices instead of one"),
    "nested for ever": (lambda _: always(200, b"[" * 90_000), "no JSON"),
    "hangs up": (lambda _: fake_judge.reset, "Re"),
    "no end": (lambda _: fake_judge.flood, "more than 100000 bytes"),
    "packed": (lambda _: always(200, b"\x1f\x8b", Content_Encoding="gzip"), "packs its answers"),
    "redirects": (lambda _: always(307, b"", Location="http://127.0.0.1:1/v1"), "redirects are not followed"),
    "not text": (lambda _: always(200, completion([{"type": "text"}])), "no text"),
    "401": (lambda _: always(401, b"who are you"), "answered 401"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_bug_071_each_way_to_fail_ends_with_a_reason(name: str) -> None:
    judge = FakeJudge()
    make, reason = FAILURES[name]
    judge.fail = make(judge)
    with serving(judge):
        (reply,) = client(judge.url).ask_all([ask()])
    assert reply.text is None
    assert reply.failure is not None
    assert reply.failure.cause == "endpoint"
    assert reason in reply.failure.reason
    assert judge.url in reply.failure.reason
    assert len(reply.failure.reason) < 500
    if reason == "no answer within":
        assert len(judge.bodies) == 1, "the limit is on the answer, not on each attempt"


def test_bug_071_a_closed_port_ends_with_a_reason() -> None:
    url = closed_port()
    (reply,) = client(url).ask_all([ask()])
    assert reply.failure is not None
    assert url in reply.failure.reason
    assert "ConnectError" in reply.failure.reason


def test_bug_071_a_batch_is_given_up_when_no_endpoint_answers() -> None:
    """A thousand rows do not wait a thousand limits: what was not tried says so."""
    judge = FakeJudge(fail=always(503))
    with serving(judge):
        replies = client(judge.url, concurrency=1, attempts=1).ask_all([ask(row) for row in range(1000)])
    causes = [reply.failure.cause for reply in replies if reply.failure]
    assert causes == ["endpoint"] * GIVEN_UP_AFTER + ["untried"] * (1000 - GIVEN_UP_AFTER)
    assert len(judge.bodies) == GIVEN_UP_AFTER
    assert "503" in repr(replies[-1])


def test_bug_071_a_batch_ends_within_its_own_limit() -> None:
    judge = FakeJudge()
    judge.fail = lambda handler, number: number > 2 and fake_judge.silent(judge)(handler, number)
    with serving(judge):
        replies = client(judge.url, concurrency=1, answer_seconds=60.0, batch_seconds=0.3).ask_all(
            [ask(row) for row in range(5)]
        )
    assert [reply.text is None for reply in replies] == [False, False, True, True, True]
    assert [reply.failure.cause for reply in replies if reply.failure] == ["endpoint", "untried", "untried"]


def test_what_passes_is_asked_again_and_what_does_not_is_not() -> None:
    for status in (500, 502, 503, 429, 408):
        judge = FakeJudge(fail=first(1, always(status)))
        with serving(judge):
            (reply,) = client(judge.url).ask_all([ask()])
        assert reply.text is not None, status
        assert len(judge.bodies) == 2
    for status in (400, 401, 403, 404, 422):
        judge = FakeJudge(fail=first(1, always(status)))
        with serving(judge):
            (reply,) = client(judge.url).ask_all([ask()])
        assert reply.failure is not None, status
        assert reply.failure.cause == ("request" if status in (400, 422) else "endpoint")
        assert len(judge.bodies) == 1


@pytest.mark.parametrize("after", ["0", "1", "100000", "Wed, 21 Oct 2015 07:28:00 GMT", "soon", "-1"])
def test_retry_after_is_kept_within_the_answers_limit(after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = FakeJudge(fail=first(1, always(429, b"", Retry_After=after)))
    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    with serving(judge):
        (reply,) = client(judge.url, answer_seconds=2.0).ask_all([ask()])
    if after == "100000":
        assert reply.failure is not None
        assert "429" in reply.failure.reason
        assert not slept, "there is no use in waiting for longer than the limit"
    else:
        assert reply.text is not None
        assert slept[-1] >= (1.0 if after == "1" else 0.0)


def test_what_the_endpoint_would_say_again_is_no_failure_of_the_endpoint() -> None:
    for body in (completion(""), completion(" \n"), completion(None), completion("half", finish_reason="length")):
        judge = FakeJudge(fail=always(200, body))
        with serving(judge):
            (reply,) = client(judge.url).ask_all([ask()])
        assert reply.failure is not None
        assert reply.failure.cause == "request"
        assert len(judge.bodies) == 1


def test_equal_questions_are_asked_once_and_the_order_is_kept() -> None:
    judge = FakeJudge(answer=lambda parts: f"said of {parts['candidate answer']}")
    with serving(judge):
        asker = client(judge.url)
        rows = [3, 1, 3, 2, 1, 3]
        texts = [reply.text for reply in asker.ask_all([ask(row) for row in rows])]
        assert texts == [f"said of {row}" for row in rows]
        assert sorted(judge.candidates) == ["1", "2", "3"]
        assert [reply.text for reply in asker.ask_all([ask(2), ask(4)])] == ["said of 2", "said of 4"]
    assert sorted(judge.candidates) == ["1", "2", "3", "4"]


def test_failures_are_not_remembered() -> None:
    judge = FakeJudge(fail=first(1, always(401)))
    with serving(judge):
        asker = client(judge.url)
        assert asker.ask_all([ask()])[0].failure is not None
        assert asker.ask_all([ask()])[0].text is not None


def slow(parts: dict[str, str]) -> str:
    time.sleep(0.02)
    return "yes"


def test_concurrency_is_a_bound_for_each_endpoint_and_the_load_is_spread() -> None:
    one, two = FakeJudge(answer=slow), FakeJudge(answer=slow)
    with serving(one), serving(two):
        replies = client(one.url, two.url, concurrency=3, answer_seconds=5.0).ask_all([ask(row) for row in range(40)])
    assert all(reply.text == "yes" for reply in replies)
    assert max(one.most_at_once, two.most_at_once) <= 3
    assert min(len(one.bodies), len(two.bodies)) >= 10


def test_one_endpoint_takes_over_for_another() -> None:
    for url in (closed_port(), None):
        broken, whole = FakeJudge(fail=always(404)), FakeJudge(answer=slow)
        with serving(broken), serving(whole):
            replies = client(url or broken.url, whole.url, concurrency=2).ask_all([ask(row) for row in range(30)])
        assert all(reply.text is not None for reply in replies)
        assert len(whole.bodies) == 30
        assert whole.most_at_once <= 2, "the load of the other is no reason to give it more than its bound"


def test_a_probe_asks_every_endpoint_and_remembers_nothing() -> None:
    judge, gone = FakeJudge(), closed_port()
    with serving(judge):
        asker = client(judge.url, gone)
        found = asker.probe(ask())
        asker.probe(ask())
    assert found[judge.url].text is not None
    assert found[gone].failure is not None
    assert len(judge.bodies) == 2


def test_it_can_be_asked_from_a_thread_and_from_within_a_loop() -> None:
    async def within(asker: JudgeClient) -> str | None:
        return asker.ask_all([ask()])[0].text

    with serving() as judge:
        assert asyncio.run(within(client(judge.url)))
        found: list[str | None] = []
        thread = threading.Thread(target=lambda: found.append(client(judge.url).ask_all([ask()])[0].text))
        thread.start()
        thread.join()
        assert found[0]


def test_an_interrupted_batch_leaves_no_thread_behind() -> None:
    judge = FakeJudge()
    judge.fail = fake_judge.silent(judge)

    def interrupted(done: int, total: int) -> None:
        assert (done, total) == (0, 3)
        raise KeyboardInterrupt

    with serving(judge):
        with pytest.raises(KeyboardInterrupt):
            client(judge.url, answer_seconds=60.0).ask_all([ask(row) for row in range(3)], interrupted)
        assert not [thread for thread in threading.enumerate() if thread.name == "judge"]


def test_the_key_is_sent_in_one_header_and_shown_nowhere() -> None:
    """Not even where the endpoint echoes it."""
    judge = FakeJudge(fail=lambda handler, number: send(handler, 401, f"bad key {KEY}".encode()))
    with serving(judge):
        asker = client(judge.url, key=KEY)
        (reply,) = asker.ask_all([ask()])
        probed = asker.probe(ask())
    assert judge.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(reply) + repr(probed) + repr(asker) + repr(asker.settings) + str(judge.bodies)
    assert "(the key)" in repr(reply)


def test_a_request_says_every_setting_and_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", closed_port())
    with serving() as judge:
        client(judge.url).ask_all([ask()])
    (body,) = judge.bodies
    assert {name: body[name] for name in body if name != "messages"} == {
        "model": "judge",
        "max_tokens": 16,
        "temperature": 0.0,
        "top_p": 1.0,
        "n": 1,
        "stream": False,
    }
    assert "Authorization" not in judge.headers[0]


def test_certificates_are_verified_and_redirects_are_not_followed() -> None:
    http = client("https://judge.example/v1")._http()
    transport = http._transport
    assert isinstance(transport, httpx.AsyncHTTPTransport)
    context = transport._pool._ssl_context
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert not http.follow_redirects
    assert not http.trust_env


def test_the_cache_keeps_the_newest() -> None:
    cache = ReplyCache(characters=10)
    for row in range(4):
        cache.put(ask(row), f"said{row}")
        cache.get(ask(0))
    assert [cache.get(ask(row)) for row in range(4)] == ["said0", None, None, "said3"]
    cache.put(ask(0), "x" * 11)
    assert [cache.get(ask(row)) for row in range(4)] == [None] * 4


def test_half_a_surrogate_pair_in_an_answer_is_made_text() -> None:
    judge = FakeJudge(fail=always(200, completion("\ud800 yes")))
    with serving(judge):
        (reply,) = client(judge.url).ask_all([ask()])
    assert reply.text == "? yes"
