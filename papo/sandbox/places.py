"""What a sandboxed program finds where, and its environment."""

import os
from collections.abc import Mapping
from typing import Any

from papo.sandbox.isolation import SYSTEM, python, unseen
from papo.sandbox.limits import Isolation
from papo.sandbox.packages import PACKAGES

PROGRAM = "/program"


def placed(root: str, isolation: Isolation, readable: Mapping[str, str], *, folder: str) -> dict[str, Any]:
    """What the launcher is told of places; the environment is all that a program gets.

    Without isolation the places lie in `root`, and what it may read is linked there.
    """
    base = root if isolation == "none" else ""
    folder, program, packages = (f"{base}{path}" for path in (folder, PROGRAM, PACKAGES))
    if isolation == "none":
        os.mkdir(folder)
        os.mkdir(program)
        for inner, path in readable.items():
            os.makedirs(os.path.dirname(root + inner), exist_ok=True)
            os.symlink(path, root + inner)
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "PYTHONHASHSEED": "0",
    }  # fmt: skip
    if any(inner.startswith(f"{PACKAGES}/") for inner in readable):
        environment["PYTHONPATH"] = packages
    return {
        "isolation": isolation, "root": root, "readable": {path: path for path in SYSTEM} | dict(readable),
        "unseen": unseen(), "python": python(), "folder": folder, "program": program, "environment": environment,
    }  # fmt: skip
