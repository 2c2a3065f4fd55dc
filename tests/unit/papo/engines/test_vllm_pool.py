"""Many servers as one: who is asked, and what becomes of what a failed one was asked."""

import threading
from dataclasses import replace

import pytest

from papo.engines.vllm_client import Ask, ServerFailed, VllmLink
from papo.engines.vllm_pool import TRIES, Pool
from papo.errors import EngineError, GeneratorDied
from tests.unit.papo.engines.fake_vllm import FakeServer

ASKS = [Ask(prompt_ids=(5,), seed=seed, temperature=1.0, max_tokens=8, end_ids=(1,)) for seed in range(24)]


def servers(count: int = 2) -> list[FakeServer]:
    return [FakeServer(url=f"http://127.0.0.1:{number + 1}") for number in range(count)]


def pool_of(fakes: list[FakeServer], *, concurrency: int = 4) -> Pool:
    return Pool([fake.link() for fake in fakes], concurrency=concurrency)


def seeds(fake: FakeServer) -> list[int]:
    return [body["seed"] for body in fake.asked]


def test_answers_come_in_the_order_of_the_asks() -> None:
    fakes = servers()
    told: list[int] = []

    found = pool_of(fakes).sample(ASKS, told.append)

    assert [row.token_ids[0] for row in found if row] == [2 + seed % 7 for seed in range(24)]
    assert sorted(seeds(fakes[0]) + seeds(fakes[1])) == list(range(24))
    assert told == sorted(told)


def test_two_servers_share_the_load() -> None:
    fakes = servers()
    barrier = threading.Barrier(2, timeout=10)
    for fake in fakes:
        # No answer before the other server has a request too: one server alone would never get on.
        fake.before = barrier.wait

    pool_of(fakes, concurrency=1).sample(ASKS)

    assert len(fakes[0].asked) == len(fakes[1].asked) == 12


def test_a_server_never_has_more_requests_than_it_may() -> None:
    (fake,) = servers(1)
    lock, now, most = threading.Lock(), 0, 0

    def count() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        threading.Event().wait(0.005)
        with lock:
            now -= 1

    fake.before = count
    pool_of([fake], concurrency=3).sample(ASKS)

    assert 1 < most <= 3


def test_what_a_failed_server_was_asked_goes_to_another() -> None:
    fakes = servers()
    fakes[0].dies_after = 3
    whole = pool_of(servers()).sample(ASKS)
    pool = pool_of(fakes)

    found = pool.sample(ASKS)

    assert found == whole
    assert [link.url for link in pool.links] == [fakes[1].url]
    assert list(pool.take_dropped()) == [fakes[0].url]
    assert pool.take_dropped() == {}


def test_the_loss_of_all_servers_is_an_error_that_names_them() -> None:
    fakes = servers()
    for fake in fakes:
        fake.dies_after = 3

    with pytest.raises(GeneratorDied, match=r"127\.0\.0\.1:1.*connection"):
        pool_of(fakes).sample(ASKS)


def test_a_refused_row_stops_the_shard() -> None:
    fakes = servers()
    fakes[1].shape = lambda choice: choice["logprobs"]["token_logprobs"].pop()
    asks = [replace(ask, name=f"row {ask.seed}") for ask in ASKS]

    with pytest.raises(EngineError, match=r"row .* 4 token ids and 3 log-probs"):
        pool_of(fakes, concurrency=1).sample(asks)


def test_each_drops_who_does_not_answer() -> None:
    fakes = servers(3)
    fakes[1].down = True
    pool = pool_of(fakes)

    answers = pool.each(VllmLink.version)

    assert list(answers) == [fakes[0].url, fakes[2].url]
    fakes[0].down = fakes[2].down = True
    with pytest.raises(GeneratorDied):
        pool.each(VllmLink.version)


def test_dropping_twice_is_dropping_once() -> None:
    pool = pool_of(servers())
    link = pool.links[0]
    pool.drop(link, ServerFailed("first"))
    pool.drop(link, ServerFailed("second"))

    assert pool.take_dropped() == {link.url: "first"}


def test_bug_070_a_request_that_is_never_answered_is_asked_twice_and_lost() -> None:
    """The others do not wait for it, and no server is dropped for it."""
    fakes = servers()
    for fake in fakes:
        fake.silent_for = lambda body: body["seed"] == 5
    pool = pool_of(fakes)

    found = pool.sample(ASKS)

    assert [row is None for row in found] == [seed == 5 for seed in range(24)]
    assert (seeds(fakes[0]) + seeds(fakes[1])).count(5) == TRIES
    assert len(pool.links) == 2
    assert pool.take_dropped() == {}


def test_a_request_that_is_answered_the_second_time_is_not_lost() -> None:
    (fake,) = servers(1)
    fake.silent_for = lambda body: body["seed"] == 5 and seeds(fake).count(5) == 1
    assert pool_of([fake]).sample(ASKS) == pool_of(servers(1)).sample(ASKS)
    assert seeds(fake).count(5) == 2


def test_servers_that_answer_nothing_are_to_blame_themselves() -> None:
    fakes = servers()
    for fake in fakes:
        fake.silent_for = lambda body: body["seed"] % 2 == 0
    with pytest.raises(GeneratorDied, match=r"of 24 requests were asked 2 times .* raise generator.request_seconds"):
        pool_of(fakes).sample(ASKS)


def test_a_silent_server_that_is_gone_is_dropped() -> None:
    fakes = servers()

    def gone(body: dict[str, object]) -> bool:
        fakes[0].down = True
        return True

    fakes[0].silent_for = gone
    pool = pool_of(fakes, concurrency=1)
    assert None not in pool.sample(ASKS)
    assert [link.url for link in pool.links] == [fakes[1].url]
