"""C-13: what the environment says about proxies keeps nobody from this machine's own servers."""

from urllib.request import getproxies, proxy_bypass

import httpx
import pytest

from papo import loopback
from papo.loopback import HOSTS, bypass_proxy, is_loopback, unusable_proxies

DEAD = "http://127.0.0.1:9"


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_no_client_takes_the_proxy_to_this_machine(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, DEAD)
    for variable, hosts in bypass_proxy({}).items():
        monkeypatch.setenv(variable, hosts)
    assert getproxies()
    for host in HOSTS:
        assert proxy_bypass(host), host
        spelled = f"[{host}]" if ":" in host else host
        with httpx.Client() as client:
            direct = client._transport_for_url(httpx.URL(f"http://{spelled}:1/"))
            away = client._transport_for_url(httpx.URL("http://elsewhere.example/"))
        assert direct is client._transport or direct is None, host
        assert away is not client._transport


def test_what_the_user_excepted_stays_excepted_whichever_spelling_it_has() -> None:
    found = bypass_proxy({"NO_PROXY": "a.example, localhost", "no_proxy": ".b.example"})
    assert found["NO_PROXY"] == found["no_proxy"] == "a.example,localhost,.b.example,127.0.0.1,::1"
    assert "*" in bypass_proxy({"NO_PROXY": "*"})["no_proxy"].split(",")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:4200/api", True),
        ("http://localhost/api", True),
        ("http://[::1]:4200/api", True),
        ("http://127.0.0.1.example/api", False),
        ("https://api.example/api", False),
        ("http://[broken", False),
        ("", False),
    ],
)
def test_loopback_is_known_by_its_names(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected


def test_a_socks_proxy_that_httpx_cannot_speak_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"ALL_PROXY": "socks5h://proxy.example:1080", "HTTP_PROXY": DEAD}
    monkeypatch.setattr(loopback, "find_spec", lambda name: None)
    assert unusable_proxies(given) == ["ALL_PROXY"]
    monkeypatch.setattr(loopback, "find_spec", lambda name: object())
    assert unusable_proxies(given) == []
