"""What of assertions can be said before any program is there: code that is none, and tests that no program can pass."""

import ast
import sys
from collections.abc import Collection, Iterator, Sequence

from papo.sandbox.names import unknown


def completed(prompt: object) -> str:
    """A prompt as code of its own: one that ends in the head of a function is given a body. Raises ValueError."""
    if not isinstance(prompt, str):
        raise ValueError("prompt is not text")
    for text in (prompt, f"{prompt}\n    pass\n"):
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return text
    raise ValueError("the prompt of the tests is no Python")


def refuse_no_python(texts: Sequence[str]) -> None:
    """Raise ValueError for the first text that is no Python."""
    for text in texts:
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"a test is no Python ({error})") from None


def refuse_untestable(setup: Sequence[str], tests: Sequence[str], entry_point: str | None) -> None:
    """Raise ValueError for what would fail every program.

    That is a set-up that needs the program, and a function or class of the tests, or an object of one, as an argument.
    """
    nodes = [node for text in (*setup, *tests) for node in ast.walk(ast.parse(text))]
    if any(alias.name == "*" for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names):
        # Whose a name is cannot be said then.
        return
    if entry_point is None and (needed := unknown(setup)):
        raise ValueError(f"the tests' set-up uses {min(needed)}, which it does not define: it runs without the program")
    made = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)} | made
    checks = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "check" and node.args.args]
    theirs = {entry_point, *(node.args.args[0].arg for node in checks)} if entry_point else unknown((*setup, *tests))
    for call in nodes:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in theirs:
            for given in (*call.args, *(keyword.value for keyword in call.keywords)):
                if name := _handed_over(given, own - theirs, made):
                    raise ValueError(f"a test hands {name} of its own to the program, which only gets values")


def _handed_over(given: ast.expr, own: Collection[str], made: Collection[str]) -> str | None:
    if isinstance(given, ast.Lambda):
        return "a function"
    if isinstance(given, ast.Name) and given.id in own:
        return f"{given.id}"
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Name) and given.func.id in made:
        return f"an object ({given.func.id})"
    return None


def missing_imports(texts: Sequence[str], importable: Collection[str]) -> list[str]:
    """Modules that the texts import, outside of any `try`, and that are neither Python's nor `importable`."""
    found = {name for text in texts for name in _imports(ast.parse(text))}
    return sorted(found - set(sys.stdlib_module_names) - set(importable))


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Try):
        return
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module.partition(".")[0]
    for child in ast.iter_child_nodes(node):
        yield from _imports(child)
