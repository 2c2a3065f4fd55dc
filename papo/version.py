"""The release that is at work: part of every record that a later release may have to read."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

UNKNOWN = "unknown"
"""Of a source tree that was never installed."""


@cache
def papo_version() -> str:
    """papo's own version, as it is installed."""
    try:
        return version("papo")
    except PackageNotFoundError:
        return UNKNOWN
