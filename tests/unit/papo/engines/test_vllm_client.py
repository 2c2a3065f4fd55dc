"""One vLLM server: what a request says, and which answers are refused."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from papo.engines.vllm_client import Ask, ServerFailed, VllmLink, checked, completion_body
from papo.errors import EngineError
from tests.unit.papo.engines.fake_vllm import FakeServer

ASK = Ask(prompt_ids=(5, 6, 7), seed=2**61 + 3, temperature=0.7, max_tokens=4, end_ids=(1, 9), name="row 3")


def answer(**changes: Any) -> dict[str, Any]:
    choice = {
        "finish_reason": "length",
        "token_ids": [2, 3, 4, 5],
        "prompt_token_ids": [5, 6, 7],
        "logprobs": {"token_logprobs": [-0.1, -0.2, -0.3, -0.4]},
    }
    return {"choices": [choice | changes]}


def test_bug_045_every_setting_of_a_request_is_spelled_out_and_neutral() -> None:
    body = completion_body(ASK, model="policy")

    assert body["prompt"] == [5, 6, 7]
    assert (body["seed"], body["temperature"], body["max_tokens"], body["n"]) == (2**61 + 3, 0.7, 4, 1)
    neutral = {
        "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0,
        "frequency_penalty": 0.0, "min_tokens": 0, "stop": [], "add_special_tokens": False,
    }  # fmt: skip
    assert {name: body[name] for name in neutral} == neutral
    assert (body["stop_token_ids"], body["ignore_eos"]) == ([1, 9], True)


def test_an_unseeded_request_has_no_seed() -> None:
    assert completion_body(replace(ASK, seed=None), model="policy")["seed"] is None


def test_a_completion_cut_at_the_limit() -> None:
    found = checked(ASK, answer(), server="here")

    assert (found.token_ids, found.logprobs) == ([2, 3, 4, 5], [-0.1, -0.2, -0.3, -0.4])


def test_bug_035_nothing_behind_the_first_end_token_is_kept() -> None:
    found = checked(ASK, answer(token_ids=[2, 9, 1, 5], finish_reason="stop"), server="here")

    assert (found.token_ids, found.logprobs) == ([2, 9], [-0.1, -0.2])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"logprobs": {"token_logprobs": [-0.1, -0.2, -0.3]}}, "4 token ids and 3 log-probs"),
        ({"logprobs": None}, "4 token ids and 0 log-probs"),
        ({"logprobs": {"token_logprobs": [-0.1, None, -0.3, -0.4]}}, "no finite number"),
        ({"logprobs": {"token_logprobs": [-0.1, float("nan"), -0.3, -0.4]}}, "no finite number"),
        ({"prompt_token_ids": [0, 5, 6, 7]}, "other prompt ids"),
        ({"prompt_token_ids": None}, "other prompt ids"),
        ({"finish_reason": "stop"}, "no end token"),
        ({"token_ids": [2, 3, 4], "logprobs": {"token_logprobs": [-0.1] * 3}}, "length after 3 of 4"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bug_033_a_row_that_does_not_fit_is_refused_and_never_mended(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineError, match=message) as caught:
        checked(ASK, answer(**changes), server="here")

    assert "row 3" in str(caught.value)


def test_stop_strings_are_sent_and_what_they_end_is_left_for_the_learner_to_cut() -> None:
    ask = replace(ASK, stop_strings=("</a>",))
    assert completion_body(ask, model="policy")["stop"] == ["</a>"]

    found = checked(ask, answer(finish_reason="stop", stop_reason="</a>"), server="here")

    assert found.token_ids == [2, 3, 4, 5]
    with pytest.raises(EngineError, match="no end token"):
        checked(ask, answer(finish_reason="stop", stop_reason=None), server="here")


def test_several_completions_for_one_request_are_refused() -> None:
    with pytest.raises(EngineError, match="2 completions instead of one"):
        checked(ASK, {"choices": answer()["choices"] * 2}, server="here")


@pytest.mark.parametrize("reason", ["abort", "error", None])
def test_an_aborted_completion_is_the_servers_failure(reason: str | None) -> None:
    with pytest.raises(ServerFailed, match="finish_reason"):
        checked(ASK, answer(finish_reason=reason), server="here")


@pytest.mark.parametrize(
    ("status", "error"), [(500, ServerFailed), (503, ServerFailed), (400, EngineError), (422, EngineError)]
)
def test_a_broken_server_is_told_from_a_wrong_request(status: int, error: type[Exception]) -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, text="because")

    link = VllmLink("http://127.0.0.1:1", transport=httpx.MockTransport(respond))

    with pytest.raises(error, match=f"{status}.*because"):
        link.sample(ASK)


def test_a_server_that_is_gone_or_hangs_has_failed() -> None:
    for fault in (httpx.ConnectError("refused"), httpx.ReadTimeout("too long")):

        def respond(request: httpx.Request, fault: Exception = fault) -> httpx.Response:
            raise fault

        link = VllmLink("http://127.0.0.1:1", transport=httpx.MockTransport(respond))

        assert not link.is_up()
        with pytest.raises(ServerFailed):
            link.sample(ASK)


def test_a_server_without_our_extension_says_how_to_start_it() -> None:
    link = VllmLink("http://127.0.0.1:1", transport=httpx.MockTransport(lambda request: httpx.Response(404)))

    with pytest.raises(EngineError, match="VLLM_SERVER_DEV_MODE=1 and --worker-extension-cls"):
        link.load("somewhere", "abc")


def test_a_link_knows_what_it_talks_to() -> None:
    server = FakeServer(longest=77)
    link = server.link()
    link.meet()
    link.load("somewhere", "abc")

    assert (link.model, link.max_model_len, link.version(), server.folder) == ("policy", 77, "abc", "somewhere")


def test_the_key_is_sent_and_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return httpx.Response(200)

    assert VllmLink("http://host:1", api_key="secret", transport=httpx.MockTransport(respond)).is_up()
    assert seen == ["Bearer secret"]
