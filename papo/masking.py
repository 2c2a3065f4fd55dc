"""Secrets in text: where an address carries one, and the text without it."""

import re

_USERINFO = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*://)(?P<user>[^/@\s:?#]*)(?P<password>:(?!\d*(?:/|$))\S*)?@"
)
_PARAMETER = re.compile(
    r"(?P<name>[?&;](?:[a-z_\-]*(?:token|secret|password|passwd|pwd|signature)|(?:api|access)[_\-]?key|key|sig)=)"
    r"[^&;#\s]+",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"\b(?:sk-[A-Za-z0-9_\-]{16,}|hf_[A-Za-z0-9]{20,}|gh[opsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w\-]{16,}"
    r"|xox[abps]-[A-Za-z0-9\-]{10,}|AKIA[A-Z0-9]{16}|eyJ[\w\-]{10,}\.[\w\-]{10,}\.[\w\-]*)"
)


def secret_in(text: str) -> str | None:
    """What kind of secret a text carries, in words; None if none is seen."""
    for found in _USERINFO.finditer(text):
        if found["password"] or found["scheme"].startswith("http"):
            return "a user name and password in its address"
    if _PARAMETER.search(text) and "://" in text:
        return "a key or password among its parameters"
    return "what looks like a key" if _KEY.search(text) else None


def masked(text: str) -> str:
    """`text` without the secrets that `secret_in` sees."""
    text = _USERINFO.sub(lambda found: f"{found['scheme']}…@", text)
    if "://" in text:
        text = _PARAMETER.sub(lambda found: f"{found['name']}…", text)
    return _KEY.sub("…", text)
