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
from inspect import unwrap
from pathlib import Path
from types import ModuleType
from typing import Any

FROM_FILE = "papo_custom_"
"""What modules are called that were loaded from a file by its path."""
_OWN = ("papo", "schemas", "tasks", "flows")
_LIBRARIES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
_INSTALLED = {"site-packages", "dist-packages"}


def source_files(function: Callable[..., Any], module: ModuleType) -> dict[str, bytes]:
    """Source by path: a module by its dotted name as folders, a file that is no module by its own name.

    `module`: where the function was found. A decorator may have put another module's function there.
    """
    inner: Any = unwrap(function)
    made_in = sys.modules.get(getattr(inner, "__module__", None) or type(inner).__module__)
    found: dict[str, bytes] = {}
    waiting: list[tuple[str, Path]] = []
    for start in (module, made_in):
        path = Path(source) if start is not None and (source := getattr(start, "__file__", None)) else None
        if start is None or path is None or path.suffix != ".py":
            continue
        name = "" if start.__spec__ is None or start.__name__.startswith(FROM_FILE) else start.__name__
        if start is module or (_is_local(name, path) and place_of(name, path) not in found):
            found[place_of(name, path)] = path.read_bytes()
            waiting.append((name, path))
    while waiting:
        name, file = waiting.pop()
        for imported in (*_parents(name), *_imports(name, file)):
            path = _local_file(imported)
            if path is not None and place_of(imported, path) not in found:
                found[place_of(imported, path)] = path.read_bytes()
                waiting.append((imported, path))
    return found


def code_sha256(files: dict[str, bytes]) -> str:
    """One hash of them all; of a single file its own."""
    hashes = {name: sha256(data).hexdigest() for name, data in sorted(files.items())}
    if len(hashes) < 2:
        return next(iter(hashes.values()), "none")
    return sha256("".join(f"{name} {digest}\n" for name, digest in hashes.items()).encode()).hexdigest()


def place_of(module: str, file: Path) -> str:
    """Where a module's source is kept: under its dotted name as folders, or by the file's own name."""
    if not module:
        return file.name
    parts = module.replace(".", "/")
    return f"{parts}/__init__.py" if file.name == "__init__.py" else f"{parts}.py"


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


def _local_file(module: str) -> Path | None:
    """Its file, if it is a module that nobody has installed. Nothing installed is imported for that."""
    for above in _parents(module):
        path = _file_of(above)
        if path is not None and not _is_local(above, path):
            return None
    path = _file_of(module)
    return path if path is not None and _is_local(module, path) else None


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
