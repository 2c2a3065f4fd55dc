"""C-19: what carries a secret is seen, and shown without it."""

import pytest

from papo.masking import masked, secret_in


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://me:word@host/x", "http://…@host/x"),
        ("https://token@host", "https://…@host"),
        ("postgresql+psycopg2://me:w/o@rd@host/db", "postgresql+psycopg2://…@host/db"),
        ("see https://host/v1?api_key=abc&x=1 there", "see https://host/v1?api_key=…&x=1 there"),
        ("https://host/?access_token=abc", "https://host/?access_token=…"),
        ("sk-abcdefghijklmnopqrstuv", "…"),
        ("hf_abcdefghijklmnopqrstuvwx", "…"),
    ],
)
def test_c_19_a_secret_is_seen_and_masked(text: str, shown: str) -> None:
    assert secret_in(text) is not None
    assert masked(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "auto",
        "sqlite:////data/a@b/mlflow.db",
        "postgresql://me@host/db",
        "http://host:5000",
        "user@host",
        "a: b@c",
        "http://h:80/a@b",
    ],
)
def test_c_19_what_is_none_stays(text: str) -> None:
    assert secret_in(text) is None
