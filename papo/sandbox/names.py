"""Whose a name in the tests is: theirs, Python's or the candidate's; inside a sandbox, and before one is made."""

import ast
import builtins
from collections.abc import Container, Sequence


def unknown(codes: Sequence[str], *, known: Container[str] = ()) -> set[str]:
    """Names that the codes read and nobody defines: the candidate's."""
    nodes = [node for code in codes for node in ast.walk(ast.parse(code))]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    bound |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return {name for name in read - bound if name not in known and not hasattr(builtins, name)}


def only_builtin(code: str) -> set[str]:
    """The one function that a test calls where that is named like a built-in one: it is the candidate's."""
    calls = [node.func for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    names = {function.id for function in calls if isinstance(function, ast.Name)}
    return names if len(names) == 1 and all(hasattr(builtins, name) for name in names) else set()
