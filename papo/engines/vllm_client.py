"""One vLLM server over HTTP: token ids in and out, its weights, its caches. Every setting is spelled out in a request.

Imported only where a run generates by vLLM.
"""

import math
from dataclasses import dataclass
from typing import Any, cast

import httpx

from papo.errors import EngineError

WORKER = "papo_vllm_worker.PapoWorker"
"""The worker extension that a server must have been started with."""
MEET_SECONDS = 30.0
OK, NOT_FOUND, SERVER_ERROR = 200, 404, 500
ADMIN_SECONDS = 600.0
"""Limit on taking over new weights; the other administrative calls take milliseconds."""


class ServerFailed(Exception):
    """A server is gone, hangs or broke: what it was asked can be asked of another."""


class ServerSilent(ServerFailed):
    """No answer within the time of a request: the server may be well and the request to blame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One completion of one prompt."""

    prompt_ids: tuple[int, ...]
    seed: int | None
    """None: unseeded, whatever the server draws."""
    temperature: float
    max_tokens: int
    end_ids: tuple[int, ...]
    stop_strings: tuple[str, ...] = ()
    name: str = ""
    """Says in errors which row it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """Ids up to and including the end token, and the log-prob of each at the sampling temperature. Where a stop string
    ended it, the learner finds the place: the server may have gone on by some tokens."""

    token_ids: list[int]
    logprobs: list[float]


class VllmLink:
    """The client of one server. Its methods raise ServerFailed where another server can be asked instead, EngineError
    where none would do better. Safe to use by several threads."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        request_seconds: float = 600.0,
        concurrency: int = 64,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`request_seconds`: limit on one completion. `transport`: in place of the network, for tests."""
        self.url = url.rstrip("/")
        self.model = ""
        self.max_model_len = 0
        self._http = httpx.Client(
            base_url=self.url,
            headers={} if api_key is None else {"Authorization": f"Bearer {api_key}"},
            timeout=request_seconds,
            limits=httpx.Limits(max_connections=concurrency + 8, max_keepalive_connections=concurrency + 8),
            transport=transport,
            # The servers are named by address: no proxy of the environment may stand between.
            trust_env=False,
        )

    def is_up(self) -> bool:
        """Whether the server answers at all."""
        try:
            return self._http.get("/health", timeout=5.0).status_code == OK
        except httpx.HTTPError:
            return False

    def meet(self) -> None:
        """Learn the model's name and its longest sequence."""
        (entry, *_) = self._json("GET", "/v1/models", timeout=MEET_SECONDS)["data"]
        self.model, self.max_model_len = entry["id"], int(entry["max_model_len"])

    def sample(self, ask: Ask) -> Sampled:
        """One completion. Raises EngineError for an answer that is not one log-prob a token of these very prompt ids
        (BUG-033): such a row is refused, never padded."""
        answer = self._json("POST", "/v1/completions", body=completion_body(ask, model=self.model))
        return checked(ask, answer, server=self.url)

    def load(self, folder: str, policy_sha256: str) -> None:
        """Take over the weights of a folder that the server can read, in place."""
        self._call("papo_load", {"folder": folder, "policy_sha256": policy_sha256})

    def reset_prefix_cache(self) -> None:
        """Forget what older weights computed: without it their prefixes are used on in silence (BUG-047)."""
        self._request("POST", "/reset_prefix_cache", timeout=ADMIN_SECONDS)

    def version(self) -> str | None:
        """Which policy the server says it holds."""
        answers = {answer["policy_sha256"] for answer in self._call("papo_version", {})}
        return answers.pop() if len(answers) == 1 else None

    def fingerprint(self) -> list[dict[str, Any]]:
        """What each rank of the server holds: see `papo_vllm_worker.PapoWorker.papo_fingerprint`."""
        return self._call("papo_fingerprint", {})

    def sleep(self) -> None:
        """Give the GPU's memory back."""
        self._request("POST", "/sleep", params={"level": "1"}, timeout=ADMIN_SECONDS)

    def wake(self) -> None:
        self._request("POST", "/wake_up", timeout=ADMIN_SECONDS)

    def close(self) -> None:
        self._http.close()

    def _call(self, method: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        body = {"method": method, "kwargs": arguments, "timeout": ADMIN_SECONDS}
        return self._json("POST", "/collective_rpc", body=body, timeout=ADMIN_SECONDS)["results"]

    def _json(self, verb: str, path: str, *, body: Any = None, timeout: float | None = None) -> dict[str, Any]:
        response = self._request(verb, path, body=body, timeout=timeout)
        try:
            return cast("dict[str, Any]", response.json())
        except ValueError:
            raise ServerFailed(f"{self.url}{path} answered with something that is no JSON") from None

    def _request(
        self, verb: str, path: str, *, body: Any = None, params: Any = None, timeout: float | None = None
    ) -> httpx.Response:
        limit = httpx.USE_CLIENT_DEFAULT if timeout is None else timeout
        try:
            response = self._http.request(verb, path, json=body, params=params, timeout=limit)
        except httpx.ReadTimeout as error:
            raise ServerSilent(f"{self.url}{path} did not answer in time") from error
        except (httpx.HTTPError, RuntimeError) as error:
            # RuntimeError: the client was closed under a request that was under way.
            raise ServerFailed(f"{self.url}{path}: {type(error).__name__} {error}".rstrip()) from error
        if response.status_code >= SERVER_ERROR:
            raise ServerFailed(f"{self.url}{path} answered {response.status_code}: {response.text[:500]}")
        if response.status_code == NOT_FOUND and not path.startswith("/v1"):
            raise EngineError(
                f"{self.url} has no {path}: start it with VLLM_SERVER_DEV_MODE=1 and --worker-extension-cls {WORKER},"
                " as docs/vllm.md shows."
            )
        if response.is_error:
            raise EngineError(f"{self.url}{path} refused the request ({response.status_code}): {response.text[:500]}")
        return response


def completion_body(ask: Ask, *, model: str) -> dict[str, Any]:
    """The request, with every setting that a token's distribution depends on: the model folder's defaults cannot leak.

    The end ids are given as stop ids, and the server's own idea of an end token is left out.
    """
    return {
        "model": model,
        "prompt": list(ask.prompt_ids),
        "n": 1,
        "seed": ask.seed,
        "max_tokens": ask.max_tokens,
        "min_tokens": 0,
        "temperature": ask.temperature,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "stop": list(ask.stop_strings),
        "include_stop_str_in_output": True,
        "stop_token_ids": list(ask.end_ids),
        "ignore_eos": True,
        "add_special_tokens": False,
        "skip_special_tokens": False,
        "logprobs": 0,
        "return_token_ids": True,
        "echo": False,
        "stream": False,
    }


def checked(ask: Ask, answer: dict[str, Any], *, server: str) -> Sampled:
    """The completion of an answer, held to what was asked for."""
    choices = cast("list[dict[str, Any]]", answer.get("choices") or [{}])
    (choice, *others) = choices
    reason, ids = choice.get("finish_reason"), cast("list[int]", choice.get("token_ids") or [])
    logprobs = cast("list[float | None]", (choice.get("logprobs") or {}).get("token_logprobs") or [])
    if reason not in ("stop", "length"):
        # Aborted: the server is going down.
        raise ServerFailed(f"{server} ended a completion with finish_reason {reason}")
    fault = None
    if others:
        fault = f"{len(choices)} completions instead of one"
    elif list(choice.get("prompt_token_ids") or ()) != list(ask.prompt_ids):
        fault = "other prompt ids than were sent"
    elif len(ids) != len(logprobs):
        fault = f"{len(ids)} token ids and {len(logprobs)} log-probs"
    elif not all(number is not None and math.isfinite(number) for number in logprobs):
        fault = "a log-prob that is no finite number"
    else:
        ids, fault = _ended(ids, reason, ask, by_string=choice.get("stop_reason") in ask.stop_strings)
    if fault is not None:
        raise EngineError(
            f"{server} answered {ask.name or 'a request'} with {fault}: the row is refused, never mended."
        )
    return Sampled(token_ids=ids, logprobs=[float(cast("float", number)) for number in logprobs[: len(ids)]])


def _ended(ids: list[int], reason: str, ask: Ask, *, by_string: bool) -> tuple[list[int], str | None]:
    """Ids up to the first end token (BUG-035), and what does not fit the finish reason."""
    first = next((place for place, index in enumerate(ids) if index in ask.end_ids), None)
    if first is not None:
        return ids[: first + 1], None
    if reason == "stop" and by_string:
        return ids, None
    if reason == "stop":
        return ids, "finish_reason stop but no end token"
    if len(ids) != ask.max_tokens:
        return ids, f"finish_reason length after {len(ids)} of {ask.max_tokens} tokens"
    return ids, None
