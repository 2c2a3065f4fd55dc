"""Two real vLLM servers on the tiny model: what they sample, how they take over weights, what is noticed."""

import os
import signal
import threading
import time
from dataclasses import replace

import pytest

from papo.engines.vllm_client import VllmLink
from papo.errors import EngineError, GeneratorDied
from tests.engines import support
from tests.vllm.conftest import Bench

FLOAT32_GAP = 1e-4


def test_rollouts_are_those_of_the_policy_and_both_servers_work(opened: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    sample = VllmLink.sample
    monkeypatch.setattr(VllmLink, "sample", lambda link, ask: (asked.append(link.url), sample(link, ask))[1])
    request = opened.request("first")
    synced = opened.generator.sync(opened.host, request)
    assert synced is not None
    assert synced.probe_gap_max < FLOAT32_GAP
    assert opened.host.held is not None
    assert synced.policy_sha256 == opened.host.held.policy_sha256
    asked.clear()

    frame = opened.sample("first")

    shares = [asked.count(link.url) for link in opened.links()]
    assert len(shares) == 2
    assert min(shares) >= 4
    assert opened.gap(frame) < FLOAT32_GAP
    assert set(frame["policy_sha256"]) == {opened.host.held.policy_sha256}
    for ids, reason in frame.select("token_ids", "finish_reason").iter_rows():
        assert (ids[-1] == 1) == (reason == "stop")
        assert 1 not in ids[:-1]
        assert reason == "stop" or len(ids) == support.LONGEST
    again = opened.sample("again")
    assert again["token_ids"].to_list() == frame["token_ids"].to_list()
    assert again["completion"].to_list() == frame["completion"].to_list()


def test_the_learners_text_and_ends_are_those_of_its_own_rollouts(opened: Bench) -> None:
    served = opened.sample("greedy", temperature=0.0)
    own = support.sample(opened.host, opened.prompts, opened.folder / "own-greedy.parquet", temperature=0.0)

    for name in ("token_ids", "completion", "token_ends", "finish_reason", "completion_mask", "prompt_id"):
        assert served[name].to_list() == own[name].to_list()


def test_stop_strings_end_served_rows_where_they_end_the_learner_s_own(opened: Bench) -> None:
    """Both greedily and sampled: the same tokens, cut at the same place, with a log-prob each."""
    for temperature in (0.0, 0.8):
        plain = opened.sample("plain", temperature=temperature)
        # Of what the policy says anyway: a random one hardly says "</answer>".
        texts = plain["completion"].to_list()
        strings = (texts[0][3:5], texts[5][6:9], "nowhere")
        served = opened.sample("stops", temperature=temperature, stop_strings=strings)

        assert "stop_string" in set(served["finish_reason"])
        for row, before in zip(served.iter_rows(named=True), plain.iter_rows(named=True), strict=True):
            count = len(row["token_ids"])
            assert row["token_ids"] == before["token_ids"][:count]
            assert len(row["sampler_logprobs"]) == len(row["token_ends"]) == count
            assert row["completion"].endswith(strings) == (row["finish_reason"] == "stop_string")
            assert not any(string in row["completion"][:-1] for string in strings), "cut at the first of them"
        assert opened.gap(served, temperature or 1.0) < FLOAT32_GAP
        if temperature == 0.0:
            path = opened.folder / "own-stops.parquet"
            own = support.sample(opened.host, opened.prompts, path, temperature=0.0, stop_strings=strings)
            for name in ("token_ids", "completion", "token_ends", "finish_reason"):
                assert served[name].to_list() == own[name].to_list()


def test_bug_047_new_weights_answer_after_a_sync(opened: Bench) -> None:
    before = opened.sample("before")
    opened.learn()

    after = opened.sample("after")

    assert opened.gap(after) < FLOAT32_GAP
    assert after["sampler_logprobs"].to_list() != before["sampler_logprobs"].to_list()
    assert set(after["policy_sha256"]) != set(before["policy_sha256"])


def test_a_cache_that_is_not_reset_is_caught(opened: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    opened.sample("warm")
    opened.learn()
    monkeypatch.setattr(VllmLink, "reset_prefix_cache", lambda link: None)

    with pytest.raises(EngineError, match="fails the log-prob probe"):
        opened.sample("stale")

    monkeypatch.undo()
    assert opened.gap(opened.sample("mended")) < FLOAT32_GAP


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("plant_stale", "fingerprint"),
        ("plant_matrix", "log-prob probe"),
        ("plant_buffer", "fingerprint"),
        ("plant_bf16", "fingerprint"),
    ],
)
def test_other_weights_than_the_learners_are_caught(opened: Bench, fault: str, check: str) -> None:
    opened.sample("whole")
    opened.learn()
    opened.plant(fault)
    try:
        with pytest.raises(EngineError, match=f"fails the {check}"):
            opened.sample("faulty")
    finally:
        opened.plant("plant_nothing")

    assert opened.gap(opened.sample("mended")) < FLOAT32_GAP


def test_sleeping_servers_wake_for_the_next_shard(opened: Bench) -> None:
    first = opened.sample("awake")
    opened.generator.rest()

    assert opened.sample("woken")["token_ids"].to_list() == first["token_ids"].to_list()


def test_a_server_killed_in_mid_shard_changes_nothing(opened: Bench) -> None:
    request = replace(opened.request("whole"), max_completion_length=200)
    opened.generator.sync(opened.host, request)
    opened.generator.generate(opened.host, request)
    whole = opened.read(request)
    victim = opened.generator.servers[0]
    assert victim is not None
    killed_url = victim.url

    def kill() -> None:
        time.sleep(0.05)
        os.killpg(victim.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    request = replace(request, output=str(opened.folder / "survived.parquet"))
    notes = opened.generator.generate(opened.host, request)
    killer.join()
    survived = opened.read(request)

    assert [note for note in notes if note.startswith(killed_url)], notes
    assert survived["token_ids"].to_list() == whole["token_ids"].to_list()
    ours, theirs = (frame["sampler_logprobs"].explode().to_list() for frame in (survived, whole))
    assert ours == pytest.approx(theirs, abs=1e-5)

    # With the next policy it is there again, started from the export: the other, which only reloaded, must equal it.
    opened.learn()
    opened.sample("fresh", temperature=0.0)
    one, other = opened.links()
    asks = [opened.ask(prompt) for prompt in opened.prompt_ids()]
    assert [one.sample(ask).token_ids for ask in asks] == [other.sample(ask).token_ids for ask in asks]


def test_the_loss_of_all_servers_is_said_and_the_next_sync_starts_them_again(opened: Bench) -> None:
    opened.sample("before")
    for server in opened.generator.servers:
        assert server is not None
        server.kill()

    with pytest.raises(GeneratorDied, match="no vLLM server is left"):
        opened.sample("lost")

    opened.generator.close()
    assert opened.gap(opened.sample("after")) < FLOAT32_GAP
