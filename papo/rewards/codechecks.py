"""What of assertions can be said before any program is there: code that is none, and tests that no program can pass."""

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence

from papo.sandbox.names import unknown

_OBJECTS = ("ListNode", "TreeNode")
"""Classes that LeetCode's judge builds objects of; its sets describe them in comments or in the prompt."""


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
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    own = {node.name for node in functions} | made
    checks = [node for node in functions if node.name == "check" and node.args.args]
    theirs = {entry_point, *(node.args.args[0].arg for node in checks)} if entry_point else unknown((*setup, *tests))
    makers = made | _makers(functions, made)
    objects = _bound_to(nodes, makers, own)
    for call in nodes:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in theirs:
            for given in (*call.args, *(keyword.value for keyword in call.keywords)):
                if name := _handed_over(given, own - theirs, makers, objects):
                    raise ValueError(f"a test hands {name} of its own to the program, which only gets values")
        elif name := _compared(call, theirs, own, makers):
            raise ValueError(
                f"a test compares what the program returns with an object of its own ({name}): a program returns values"
            )
    refuse_own_classes([node for node in functions if node.name == entry_point], made)


def refuse_own_classes(heads: Iterable[ast.FunctionDef], made: Collection[str] = ()) -> None:
    """Raise ValueError for a head that says that a function takes or returns objects (`head: Optional[ListNode]`).

    Those are of the classes `made`, and of LeetCode's own, which starter code has only in a comment.
    """
    for head in heads:
        arguments = (*head.args.posonlyargs, *head.args.args, *head.args.kwonlyargs)
        for annotation in filter(None, (*(argument.annotation for argument in arguments), head.returns)):
            for node in ast.walk(annotation):
                # Annotations may be text: "ListNode".
                words = [node.id] if isinstance(node, ast.Name) else []
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    words = re.findall(r"\w+", node.value)
                if found := {*words} & {*made, *_OBJECTS}:
                    raise ValueError(f"{head.name} takes or returns objects of {min(found)}: programs only get values")


def _makers(functions: Sequence[ast.FunctionDef], made: Collection[str]) -> set[str]:
    """Functions of the tests that return an object of theirs, or a list of such."""
    found: set[str] = set()
    while True:
        makers = {*made, *found}
        more = {
            function.name
            for function in functions
            for node in ast.walk(function)
            if isinstance(node, ast.Return)
            and node.value is not None
            and _object_in(node.value, makers, _bound_to(list(ast.walk(function)), makers, ()))
        }
        if more <= found:
            return found
        found |= more


def _bound_to(nodes: Sequence[ast.AST], makers: Collection[str], own: Collection[str]) -> set[str]:
    """Names that an object is assigned to."""
    return {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and _object_in(node.value, makers, ())
        for target in node.targets
        if isinstance(target, ast.Name) and target.id not in own
    }


def _object_in(given: ast.expr, makers: Collection[str], objects: Collection[str]) -> str | None:
    """The name by which an object of the tests is made or known, itself or inside of a list or the like."""
    match given:
        case ast.Call(func=ast.Name(id=name)) if name in makers:
            return name
        case ast.Name(id=name) if name in objects:
            return name
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items) | ast.Dict(values=items):
            return next(filter(None, (_object_in(item, makers, objects) for item in items)), None)
        case ast.ListComp(elt=item) | ast.SetComp(elt=item) | ast.GeneratorExp(elt=item):
            return _object_in(item, makers, objects)
        case ast.IfExp(body=one, orelse=other):
            return _object_in(one, makers, objects) or _object_in(other, makers, objects)
        case _:
            return None


def _handed_over(
    given: ast.expr, own: Collection[str], makers: Collection[str], objects: Collection[str]
) -> str | None:
    if isinstance(given, ast.Lambda):
        return "a function"
    if isinstance(given, ast.Name) and given.id in own:
        return f"{given.id}"
    name = _object_in(given, makers, objects)
    return None if name is None else f"an object ({name})"


def _compared(node: ast.AST, theirs: Collection[str], own: Collection[str], makers: Collection[str]) -> str | None:
    """The maker of an object that stands beside a call of the program, compared or given to a function of the tests."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in own:
        sides = node.args
    else:
        return None
    if not any(
        isinstance(side, ast.Call) and isinstance(side.func, ast.Name) and side.func.id in theirs for side in sides
    ):
        return None
    return next(filter(None, (_object_in(side, makers, ()) for side in sides)), None)


def takes_objects(starter: object) -> bool:
    """Whether starter code asks for a function that takes or returns objects of LeetCode's classes."""
    try:
        refuse_own_classes(heads_in(starter))
    except ValueError:
        return True
    return False


def heads_in(starter: object) -> list[ast.FunctionDef]:
    """The heads of functions in starter code, which may lack their bodies; none in what is no Python."""
    if not isinstance(starter, str):
        return []
    for text in (starter, f"{starter.rstrip()}\n        pass\n", f"{starter.rstrip()}\n    pass\n"):
        try:
            return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return []


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
