"""An outcome reward of one's own: a function by its import path or file, tried before a run starts."""

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, field
from functools import lru_cache
from hashlib import sha256
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from papo.errors import ConfigError
from papo.rewards.customcode import FROM_FILE, code_sha256, place_of, source_files
from papo.rewards.verdict import Verdict
from papo.values import LATER, value

Setting = bool | int | float | str
SAMPLE_COMPLETION, SAMPLE_REFERENCE = "<think>1+1=2</think>The answer is \\boxed{2}.", "2"
"""What a custom reward is tried on."""


@value
class CustomReward:
    """What `target` returns for a completion: a number, true or false, None (undecided) or a whole Verdict.

    It is called as target(completion, reference_answer=…, finish_reason=…, **settings), from several threads at once. A
    row on which it raises has status `error` and no reward.
    """

    kind: Literal["custom"] = "custom"
    target: str
    """`package.module:function`, or `path/to/file.py:function` from the working folder."""
    settings: dict[str, Setting] = field(default_factory=dict[str, Setting])
    """Further arguments, by name."""
    correct_from: float = 1.0
    """Rewards from here on count as correct."""
    code: str | None = field(default=None, metadata=LATER)
    """SHA-256 of its source, which papo writes here when a run begins; the source is kept in the run. Covered are the
    function's file and the modules that it imports and that are in no installed package."""

    @property
    def version(self) -> str:
        """The settings and the hash of the function's source: edited code is another reward."""
        settings = {name: part for name, part in asdict(self).items() if name != "code"}
        found = code_sha256(self.sources())
        if self.code is not None and found != self.code:
            raise ConfigError(
                f"The source of {self.target} was edited while the run used it: it hashes to {found[:16]}… now, and to "
                f"{self.code[:16]}… in the run's config. Restore it, or resume the run, which says how to go on."
            )
        return f"custom/1 {json.dumps(settings, sort_keys=True)} sha256={found}"

    def sources(self) -> dict[str, bytes]:
        """The files that the function is made of, by the path under which they can be imported."""
        return source_files(load(self.target), _module_of(self.target))

    def __call__(self, completion: str, *, reference_answer: str, finish_reason: str) -> Verdict:
        """Judge one completion. Raises what the function raises, and TypeError for a result that is no reward."""
        found = load(self.target)(
            completion, reference_answer=reference_answer, finish_reason=finish_reason, **self.settings
        )
        if isinstance(found, Verdict):
            return found
        if found is None:
            return Verdict(accuracy=None, correct=None, status="unscorable", reason="the reward is None")
        if not isinstance(found, bool | int | float) or not isfinite(found):
            raise TypeError(
                f"{self.target} returned {found!r:.80}: return a finite number, a boolean, None or a Verdict"
            )
        return Verdict(accuracy=float(found), correct=float(found) >= self.correct_from, status="ok")

    def self_test(self) -> str | None:
        """Why this reward cannot be used; None if it can: it loads and judges a sample. A run asks before it starts."""
        try:
            self(SAMPLE_COMPLETION, reference_answer=SAMPLE_REFERENCE, finish_reason="stop")
            # Whether it is what the run was begun with is for the run to say, which knows the way out.
            self.sources()
            return None
        except Exception as error:
            return f"{self.target} fails on a sample completion ({type(error).__name__}: {error})"


_KEPT: dict[str, Path] = {}
"""By target: the folder with a copy of its source that stands in for it where it is gone."""
_LOADED: dict[str, dict[str, bytes]] = {}
"""By target: its source when it was loaded."""


def use_copy(target: str, folder: Path) -> bool:
    """Load `target` from `folder`, which holds what `sources` gave, if its own source is gone; whether it is."""
    place = target.rpartition(":")[0]
    if place.endswith(".py"):
        gone = not Path(place).is_file()
    else:
        try:
            gone = importlib.util.find_spec(place) is None
        except (ImportError, ValueError):
            gone = True
    if gone:
        _KEPT[target] = folder
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
        importlib.invalidate_caches()
        _module_of.cache_clear()
    return gone


def load(target: str) -> Callable[..., Any]:
    """The function of a target. Raises ValueError, or what importing it raises."""
    place, colon, name = target.rpartition(":")
    if not (place and colon and name):
        raise ValueError(f"{target!r} is no target: write package.module:function or path/to/file.py:function")
    found = getattr(_module_of(target), name, None)
    if not callable(found):
        raise ValueError(f"{place} has no function {name!r}")
    return found


def load_edited(target: str) -> None:
    """Load `target` once more if its source, or what that imports, is not what it was when this process loaded it."""
    files = source_files(load(target), _module_of(target))
    if files == _LOADED[target]:
        return
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and not name.startswith(FROM_FILE) and place_of(name, Path(file)) in files:
            # An edit within a second that keeps the size would otherwise be passed over for the compiled file.
            Path(importlib.util.cache_from_source(file)).unlink(missing_ok=True)
            del sys.modules[name]
    importlib.invalidate_caches()
    _module_of.cache_clear()
    load(target)


@lru_cache(maxsize=32)
def _module_of(target: str) -> ModuleType:
    place, _, name = target.rpartition(":")
    if place.endswith(".py"):
        kept = _KEPT.get(target)
        module = _from_file(Path(place) if kept is None else kept / Path(place).name)
    else:
        module = importlib.import_module(place)
    if callable(found := getattr(module, name, None)):
        _LOADED[target] = source_files(found, module)
    return module


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"{path} does not exist (looked for from {Path.cwd()})")
    name = f"{FROM_FILE}{sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickles look the module of a class up by its name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
