"""Which isolation this host can give, tried once; what of the host a program may read."""

import os
import shutil
import subprocess
import sys
from functools import cache

from papo.sandbox.limits import Isolation, SandboxError

_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache")


@cache
def python() -> str:
    """The interpreter that programs run on: the one of this process, without its virtual environment."""
    return os.path.realpath(sys.executable)


@cache
def unseen() -> list[str]:
    """Folders of packages that this interpreter happens to have: hidden, so that no verdict depends on them."""
    code = "import site; print(*site.getsitepackages(), sep='\\n')"
    said = subprocess.run([python(), "-I", "-c", code], capture_output=True, text=True, check=False, env={})
    return [os.path.realpath(path) for path in said.stdout.splitlines() if os.path.isdir(path)]


def _system() -> list[str]:
    found = [path for path in _FOLDERS if os.path.lexists(path)]
    base = os.path.realpath(sys.base_prefix)
    return found if base.startswith("/usr") else [*found, base]


SYSTEM = _system()
"""Read only inside: system folders and the interpreter. No home, no environment's packages, no run folder."""


ORDER: tuple[Isolation, ...] = ("bubblewrap", "namespaces")
"""What is tried, first the one that leaves no process of root's inside. Verdicts do not depend on it."""


def bubblewrap() -> str:
    """Where bubblewrap is. Raises SandboxError where it is not installed."""
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxError("bubblewrap is not installed")
    return found


def chosen(*, allow_unsandboxed: bool) -> Isolation:
    """How programs are run here. Raises SandboxError where they cannot be isolated and nobody has allowed that."""
    faults: list[str] = []
    for isolation in ORDER:
        if (fault := fault_of(isolation)) is None:
            return isolation
        faults.append(f"{isolation}: {fault}")
    if allow_unsandboxed:
        return "none"
    raise SandboxError(
        f"this host cannot isolate programs ({'; '.join(faults)}). "
        "Allow user namespaces (kernel.unprivileged_userns_clone = 1, user.max_user_namespaces > 0; in a container: "
        "--security-opt seccomp=unconfined), run as root, or set allow_unsandboxed: true and answer for every program "
        "that the model writes."
    )


@cache
def fault_of(isolation: Isolation) -> str | None:
    """Why this host cannot isolate in this way, tried once; None if it can."""
    from papo.sandbox.box import run  # noqa: PLC0415  # the box asks this module what is readable
    from papo.sandbox.limits import Limits  # noqa: PLC0415

    try:
        outcome = run(["/bin/true"], files={}, limits=Limits(), isolation=isolation)
    except (SandboxError, OSError) as error:
        return f"{error}"
    return None if outcome.finished else outcome.stderr.decode(errors="replace")[:300]
