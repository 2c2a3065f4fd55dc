"""The generator's section: what of it is identity, and which servers are refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from flows.generators import sleeps
from schemas.generators import VllmGenerator
from tests.simulation.world import config_with


def test_a_run_that_never_heard_of_generators_keeps_its_hash() -> None:
    plain = config_with()

    assert "generator" not in plain.identity
    assert config_with(generator={"kind": "embedded"}).sha256 == plain.sha256
    assert config_with(generator={"kind": "vllm"}).sha256 != plain.sha256


def test_who_samples_and_how_is_identity_and_where_is_not() -> None:
    plain = config_with(generator={"kind": "vllm"})

    assert plain.identity["generator"] == {"kind": "vllm", "seeded": True, "dtype": None}
    for change in ({"num_servers": 3}, {"servers": ["http://127.0.0.1:8000"]}, {"sleep": "never"}, {"concurrency": 2}):
        assert config_with(generator={"kind": "vllm", **change}).sha256 == plain.sha256
    for change in ({"seeded": False}, {"dtype": "bfloat16"}):
        assert config_with(generator={"kind": "vllm", **change}).sha256 != plain.sha256


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000", "http://localhost:8000/", "http://[::1]:8000", "http://127.1.2.3:1"]
)
def test_loopback_needs_no_key(url: str) -> None:
    assert VllmGenerator(servers=(url,)).api_key_env is None


@pytest.mark.parametrize("url", ["http://10.0.0.5:8000", "https://serve.example:8443/0", "http://127.0.0.1.example:1"])
def test_development_endpoints_beyond_loopback_need_a_key(url: str) -> None:
    with pytest.raises(ValidationError, match="beyond loopback"):
        VllmGenerator(servers=("http://127.0.0.1:8000", url))

    assert VllmGenerator(servers=(url,), api_key_env="KEY").servers == (url,)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"servers": []}, "empty list"),
        ({"servers": ["http://127.0.0.1:1"] * 2}, "twice"),
        ({"servers": ["127.0.0.1:8000"]}, "no URL"),
        ({"num_servers": 2, "gpus": ["0"]}, "gpus names 1 of the 2 servers"),
    ],
)
def test_servers_that_cannot_be_meant(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        VllmGenerator.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "gpu", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"gpus": ["1"]}, True, False),
        ({"servers": ["http://127.0.0.1:1"]}, True, False),
        ({"sleep": "always"}, False, True),
        ({"sleep": "never"}, True, False),
    ],
)
def test_servers_sleep_where_they_share_the_learners_gpu(fields: dict[str, Any], gpu: bool, expected: bool) -> None:
    assert sleeps(VllmGenerator.model_validate(fields), gpu=gpu) is expected
