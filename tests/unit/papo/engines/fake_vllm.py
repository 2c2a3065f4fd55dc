"""A vLLM server in memory, behind httpx's transport: what it was asked, and answers as the real one gives them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from papo.engines.vllm_client import VllmLink

END = 1


@dataclass
class FakeServer:
    url: str = "http://127.0.0.1:1"
    longest: int = 320
    asked: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """Paths and methods in the order of the calls."""
    held: str | None = None
    folder: str | None = None
    buffers: str = "tables"
    sums: dict[str, list[str]] = field(default_factory=dict)
    elements: int = 0
    down: bool = False
    dies_after: int | None = None
    """Completions answered before it is gone."""
    shape: Callable[[dict[str, Any]], None] = lambda choice: None
    """Spoils an answer's choice."""
    silent_for: Callable[[dict[str, Any]], bool] = lambda body: False
    """Requests that it never answers."""
    before: Callable[[], object] = lambda: None
    """Runs before a completion is answered."""

    def link(self, **settings: Any) -> VllmLink:
        return VllmLink(self.url, transport=httpx.MockTransport(self._answer), **settings)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        body = json.loads(request.content) if request.content else {}
        if self.down:
            raise httpx.ConnectError("connection refused", request=request)
        self.calls.append(body.get("method", path))
        match path:
            case "/health" | "/reset_prefix_cache" | "/sleep" | "/wake_up":
                return httpx.Response(200)
            case "/v1/models":
                return httpx.Response(200, json={"data": [{"id": "policy", "max_model_len": self.longest}]})
            case "/collective_rpc":
                return httpx.Response(200, json={"results": [getattr(self, body["method"])(**body["kwargs"])]})
            case "/v1/completions":
                return self._complete(body, request)
            case _:
                return httpx.Response(404)

    def papo_load(self, folder: str, policy_sha256: str) -> dict[str, Any]:
        self.folder, self.held = folder, policy_sha256
        return {"policy_sha256": policy_sha256}

    def papo_version(self) -> dict[str, Any]:
        return {"policy_sha256": self.held}

    def papo_fingerprint(self) -> dict[str, Any]:
        return {"sums": self.sums, "elements": self.elements, "dtype": "float32", "buffers": self.buffers}

    def _complete(self, body: dict[str, Any], request: httpx.Request) -> httpx.Response:
        self.before()
        if self.dies_after is not None and len(self.asked) >= self.dies_after:
            self.down = True
            raise httpx.ReadError("connection reset", request=request)
        self.asked.append(body)
        if self.silent_for(body):
            raise httpx.ReadTimeout("timed out", request=request)
        ends = bool(body["stop_token_ids"])
        ids = [2 + (body["seed"] or 0) % 7] * (3 if ends else body["max_tokens"]) + [END] * ends
        choice = {
            "index": 0,
            "finish_reason": "stop" if ends else "length",
            "token_ids": ids,
            "prompt_token_ids": body["prompt"],
            "logprobs": {"token_logprobs": [-0.5] * len(ids)},
        }
        self.shape(choice)
        return httpx.Response(200, json={"choices": [choice]})
