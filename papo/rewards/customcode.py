"""The source that a function is made of: its file, and the modules that it imports and that nobody has installed.

Installed packages, the standard library and papo itself are not followed: their releases are in the environment that a
run records. A module whose name is only known at run time is not seen, nor are data that the code reads.
"""

import ast
import importlib.util
import sys
import sysconfig
from collections.abc import Callable, Iterator
from hashlib import sha256
from inspect import getsourcefile, unwrap
from pathlib import Path
from typing import Any, cast

_OWN = ("papo", "schemas", "tasks", "flows")
_LIBRARIES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
_INSTALLED = {"site-packages", "dist-packages"}


def source_files(function: Callable[..., Any]) -> dict[str, bytes]:
    """Its source by path: a module by its dotted name as folders, a file that is no module by its own name."""
    inner: Any = unwrap(function)
    source = getsourcefile(inner if hasattr(inner, "__code__") else cast("Any", type(inner)))
    if source is None:
        return {}
    module = sys.modules.get(getattr(inner, "__module__", "") or type(inner).__module__)
    name = module.__name__ if module is not None and module.__spec__ is not None else ""
    is_module = bool(name) and not name.startswith("papo_custom_")
    file = Path(source)
    found = {_place(name, file) if is_module else file.name: file.read_bytes()}
    waiting = [(name if is_module else "", file)]
    if is_module:
        waiting += [(parent, path) for parent in _parents(name) if (path := _file_of(parent)) is not None]
        found |= {_place(parent, path): path.read_bytes() for parent, path in waiting[1:]}
    while waiting:
        name, file = waiting.pop()
        for imported in _imports(name, file):
            path = _file_of(imported)
            if path is not None and _is_local(imported, path) and _place(imported, path) not in found:
                found[_place(imported, path)] = path.read_bytes()
                waiting.append((imported, path))
    return found


def code_sha256(files: dict[str, bytes]) -> str:
    """One hash of them all; of a single file its own."""
    hashes = {name: sha256(data).hexdigest() for name, data in sorted(files.items())}
    if len(hashes) < 2:
        return next(iter(hashes.values()), "none")
    return sha256("".join(f"{name} {digest}\n" for name, digest in hashes.items()).encode()).hexdigest()


def _imports(name: str, file: Path) -> Iterator[str]:
    """Names that may be modules, with the packages that they are in."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_bytes())):
        found: list[str] = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
                base = f"{above}.{base}".strip(".")
            found = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        for one in found:
            yield from (*_parents(one), one)


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:depth]) for depth in range(1, len(parts))]


def _file_of(module: str) -> Path | None:
    try:
        known = sys.modules.get(module)
        spec = known.__spec__ if known is not None else importlib.util.find_spec(module) if module else None
    except (ImportError, ValueError, AttributeError):
        return None
    origin = spec.origin if spec is not None and spec.has_location else None
    return Path(origin) if origin is not None and origin.endswith(".py") else None


def _is_local(module: str, file: Path) -> bool:
    path = file.resolve()
    if module.partition(".")[0] in _OWN or _INSTALLED & set(path.parts):
        return False
    return not any(path.is_relative_to(place) for place in _LIBRARIES)


def _place(module: str, file: Path) -> str:
    parts = module.replace(".", "/")
    return f"{parts}/__init__.py" if file.name == "__init__.py" else f"{parts}.py"
