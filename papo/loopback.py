"""Loopback is reached directly: a proxy of the environment leads to other machines, never to this one."""

from collections.abc import Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

HOSTS = ("127.0.0.1", "localhost", "::1")
_EXCEPTIONS = ("NO_PROXY", "no_proxy")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


def bypass_proxy(environment: Mapping[str, str]) -> dict[str, str]:
    """What must be set beside `environment` so that no client takes a proxy to this machine.

    Both spellings get both spellings' hosts: some clients read only one, and none reads them together.
    """
    given = [host.strip() for name in _EXCEPTIONS for host in environment.get(name, "").split(",")]
    hosts = ",".join(dict.fromkeys(host for host in (*given, *HOSTS) if host))
    return dict.fromkeys(_EXCEPTIONS, hosts)


def unusable_proxies(environment: Mapping[str, str]) -> list[str]:
    """Variables that name a SOCKS proxy where httpx cannot speak SOCKS: it then makes no client at all, not even one
    for an address that needs no proxy."""
    if find_spec("socksio") is not None:
        return []
    return [name for name in _PROXIES if urlsplit(environment.get(name, "")).scheme.lower().startswith("socks")]


def is_loopback(url: str) -> bool:
    """Whether `url` leads to this machine by one of its usual names."""
    try:
        return (urlsplit(url).hostname or "") in HOSTS
    except ValueError:
        return False
