"""Which handlers of a test may take what a program raised; inside a sandbox, on the tests' own code.

A test that expects an exception names it: `try: f(-1) … except ValueError: …`, `with self.assertRaises(ValueError): …`.
Such handlers tell the ledger that they have it. A handler that only looks away is none of these.
"""

import ast

CAUGHT, EFFECT = "__caught__", "__for_effect__"
EXPECTING = frozenset(("raises", "assertRaises", "assertRaisesRegex"))
"""Context managers that fail without an exception."""


def marked(code: str) -> ast.Module:
    """The code, with handlers that report and with calls for their effect marked as such."""
    return ast.fix_missing_locations(_Marking().visit(ast.parse(code)))


class _Marking(ast.NodeTransformer):
    def visit_Try(self, node: ast.Try) -> ast.AST:
        self.generic_visit(node)
        if not looks_away(node):
            for handler in node.handlers:
                handler.body.insert(0, _report())
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        self.generic_visit(node)
        called = [item.context_expr.func for item in node.items if isinstance(item.context_expr, ast.Call)]
        names = {getattr(function, "attr", getattr(function, "id", None)) for function in called}
        if names & EXPECTING:
            leaving = ast.ExceptHandler(type=None, name=None, body=[_report(), ast.Raise()])
            node.body = [ast.Try(body=node.body, handlers=[leaving], orelse=[], finalbody=[])]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            node.value.func = ast.Call(func=_name(EFFECT), args=[node.value.func], keywords=[])
        return node


def looks_away(node: ast.Try) -> bool:
    """Nothing fails where the call returns, and nothing is made of the exception: it would only hide it."""
    after = [*node.body, *node.orelse]
    return not any(_fails(at) for at in after) and all(_idle(at) for handler in node.handlers for at in handler.body)


def _idle(at: ast.stmt) -> bool:
    empty = isinstance(at, ast.Return) and (at.value is None or _is_false(at.value))
    said = isinstance(at, ast.Expr) and (isinstance(at.value, ast.Constant) or _called(at.value) == "print")
    return empty or said or isinstance(at, ast.Pass | ast.Continue | ast.Break)


def _fails(at: ast.stmt) -> bool:
    return (
        isinstance(at, ast.Raise)
        or (isinstance(at, ast.Assert) and _is_false(at.test))
        or (isinstance(at, ast.Expr) and _called(at.value) == "fail")
    )


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _called(node: ast.expr) -> str | None:
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "attr", getattr(function, "id", None))


def _report() -> ast.stmt:
    return ast.Expr(value=ast.Call(func=_name(CAUGHT), args=[], keywords=[]))


def _name(name: str) -> ast.expr:
    return ast.Name(id=name, ctx=ast.Load())
