"""Modules that are imported when first used, so that a refusal or a look does not wait for what a run needs."""

from importlib import import_module
from typing import Any


class Later:
    """Stands for a module until something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, wanted: str) -> Any:
        return getattr(import_module(self._name), wanted)
