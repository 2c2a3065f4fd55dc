"""Who samples rollouts, as a section of the run config."""

from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from schemas.section import OPERATIONAL, Section


class EmbeddedGenerator(Section):
    """The learner samples on its own weights, by transformers: no weight ever moves, and rollouts are exact."""

    kind: Literal["embedded"] = "embedded"


class VllmGenerator(Section):
    """vLLM servers, which are given the weights before the first shard of each policy. Rollouts are recorded rather
    than exact: made again, a row has the same tokens (while seeded) and log-probs within rounding."""

    kind: Literal["vllm"] = "vllm"
    seeded: bool = True
    """Each row draws from its own addressed seed. On a GPU unseeded sampling is faster: then a shard that is made again
    holds other rows."""
    dtype: Literal["float32", "bfloat16"] | None = None
    """In which servers hold weights and activations; null: engine.dtype."""
    servers: Annotated[Literal["managed"] | tuple[str, ...], OPERATIONAL] = "managed"
    """managed: started by papo on this machine, on loopback, and ended with it; else the URLs of running servers, which
    must be able to read the run's folder under the same path."""
    num_servers: Annotated[int, OPERATIONAL] = Field(default=1, ge=1)
    """Managed ones; a shard is spread over them."""
    gpus: Annotated[tuple[str, ...] | None, OPERATIONAL] = None
    """CUDA_VISIBLE_DEVICES of each managed server; null: they share the learner's."""
    max_model_len: Annotated[int | None, OPERATIONAL] = Field(default=None, ge=1)
    """Tokens of prompt and completion together that a managed server takes; null: as many as the run's limits need."""
    gpu_memory_utilization: Annotated[float, OPERATIONAL] = Field(default=0.45, gt=0.0, le=1.0)
    """Share of a GPU's memory for a managed server."""
    cpu_cache_gib: Annotated[int, OPERATIONAL] = Field(default=1, ge=1)
    """Memory of a managed server's KV cache where there is no GPU."""
    cpu_threads: Annotated[int, OPERATIONAL] = Field(default=1, ge=1)
    """Of a managed server where there is no GPU."""
    sleep: Annotated[Literal["auto", "always", "never"], OPERATIONAL] = "auto"
    """Whether servers give their memory back while the policy is updated. auto: managed ones that share the learner's
    GPU."""
    environment: Annotated[str, OPERATIONAL] = "engines/vllm"
    """Folder of vLLM's own environment, below the working folder; papo engines install-vllm makes it."""
    concurrency: Annotated[int, OPERATIONAL] = Field(default=64, ge=1)
    """Requests at a time to one server."""
    start_seconds: Annotated[float, OPERATIONAL] = Field(default=600.0, gt=0.0)
    """Limit on the start of a managed server."""
    request_seconds: Annotated[float, OPERATIONAL] = Field(default=600.0, gt=0.0)
    """Limit on one completion; a server that exceeds it is dropped, and its prompts go to others."""
    api_key_env: Annotated[str | None, OPERATIONAL] = None
    """Name of the environment variable that holds the servers' API key; needed for URLs beyond loopback."""

    @model_validator(mode="after")
    def _fits(self) -> "VllmGenerator":
        if self.servers == "managed":
            if self.gpus is not None and len(self.gpus) != self.num_servers:
                raise ValueError(f"gpus names {len(self.gpus)} of the {self.num_servers} servers: give one entry each.")
            return self
        if not self.servers:
            raise ValueError("servers is an empty list: give the servers' URLs, or managed.")
        if len(set(self.servers)) != len(self.servers):
            raise ValueError("servers names a URL twice: each server is asked by itself.")
        exposed = [url for url in self.servers if not _is_loopback(url)]
        if exposed and self.api_key_env is None:
            raise ValueError(
                f"{exposed[0]} is beyond loopback: whoever reaches a server's development endpoints can change its"
                " weights. Put it behind a proxy that asks for a key on every path, and name the variable that holds"
                " the key in api_key_env (docs/vllm.md)."
            )
        return self


def _is_loopback(url: str) -> bool:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no URL of a server: write http://HOST:PORT.")
    try:
        return parts.hostname == "localhost" or ip_address(parts.hostname).is_loopback
    except ValueError:
        return False
