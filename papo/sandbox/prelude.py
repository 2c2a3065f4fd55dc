"""Names that public harnesses give to programs without an import; inside a sandbox, beside the driver.

LiveCodeBench, APPS, TACO and LeetCode run a program after such lines, so that `def f(xs: List[int])` needs no import.
"""

import builtins
from importlib import import_module
from typing import Any

# Later ones win: `Counter` is that of collections, not that of typing.
SPREAD = (
    "typing", "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics",
    "itertools", "functools", "operator", "io", "sys", "json", "fractions", "decimal",
)  # fmt: skip
"""Modules whose public names are there."""
MODULES = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics", "itertools",
    "functools", "operator", "io", "sys", "os", "json", "typing", "time", "queue", "fractions", "decimal",
)  # fmt: skip
"""Modules that are there by their own name, also where a function has the same."""
OPTIONAL = {"numpy": "np"}
"""Where the reward's `packages` name them."""
DEEPEST_CALLS = 50_000


def prelude() -> dict[str, Any]:
    """The names, beneath which no built-in one is hidden: they belong where a program's own names come first."""
    found: dict[str, Any] = {}
    for name in SPREAD:
        module = import_module(name)
        public = getattr(module, "__all__", None) or [key for key in vars(module) if not key.startswith("_")]
        found |= {key: getattr(module, key) for key in public}
    found |= {name: import_module(name) for name in MODULES}
    for name, short in OPTIONAL.items():
        try:
            found[name] = found[short] = import_module(name)
        except ImportError:
            continue
    return {**found, **vars(builtins)}
