"""Answers are data: the library's scorers that would evaluate one as Python get an evaluator that runs nothing.

Scorers of reasoning-gym 0.1 call `eval` (n_queens, binary_matrix, spiral_matrix, string_insertion, bitwise_arithmetic)
and sympy's `parse_expr`, which evals too (countdown, puzzle24, integration, polynomials). Left to themselves they would
run whatever a completion says.
"""

import ast
import re
import sys
from collections.abc import Callable
from typing import Any

LONGEST = 10_000
"""Characters of a text to evaluate."""
_LITERALS = (
    ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.unaryop,
    ast.operator, ast.expr_context,
)  # fmt: skip
FUNCTIONS = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "sec",
        "csc",
        "cot",
        "asin",
        "acos",
        "atan",
        "acot",
        "asec",
        "acsc",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "exp",
        "log",
        "ln",
        "sqrt",
        "cbrt",
        "root",
        "Abs",
        "sign",
        "factorial",
        "binomial",
        "Rational",
        "Integer",
        "Float",
        "Symbol",
        "erf",
        "erfi",
        "Ei",
        "Si",
        "Ci",
        "li",
        "gamma",
        "Min",
        "Max",
        "Add",
        "Mul",
        "Pow",
    ]
)
"""What an expression may call."""
CONSTANTS = frozenset(["pi", "E", "I", "GoldenRatio"])
_SYMBOL = re.compile(r"[A-Za-z]_?\d{0,2}|alpha|beta|gamma|theta|lamda|mu|nu|rho|sigma|tau|phi|psi|omega")
_ARITHMETIC = (
    ast.Expression, ast.Call, ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.Constant, ast.Add, ast.Sub, ast.Mult,
    ast.Div, ast.Pow, ast.UAdd, ast.USub,
)  # fmt: skip
"""What sympy is given, as Python reads it: nothing else can be named, so nothing else can be reached."""


def plain_value(text: str, *_: Any) -> Any:
    """The value of numbers, texts and containers of them, and of arithmetic on those. Raises ValueError else."""
    if len(text) > LONGEST:
        raise ValueError("it is too long to be read")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"it cannot be read: {error}") from None
    odd = next((node for node in ast.walk(tree) if not isinstance(node, _LITERALS)), None)
    if odd is not None:
        raise ValueError(f"it holds a {type(odd).__name__}, which is no plain value")
    return eval(compile(tree, "answer", "eval"), {"__builtins__": {}})  # no names, calls or attributes


def checked_expression(text: str) -> str:
    """`text` itself, if Python reads it as arithmetic of numbers, symbols, CONSTANTS and calls of FUNCTIONS.

    sympy evaluates what it is given with all of `builtins` in reach, so what a text is made of is held to a list.
    Raises ValueError.
    """
    if len(text) > LONGEST or not text.isascii():
        raise ValueError("it is too long, or holds a character that no plain expression has")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"it cannot be read: {error}") from None
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        fault = _fault_of(node, is_called=id(node) in called)
        if fault is not None:
            raise ValueError(f"it holds {fault}, which no plain expression does")
    return text


def _fault_of(node: ast.AST, *, is_called: bool) -> str | None:
    if not isinstance(node, _ARITHMETIC):
        return f"a {type(node).__name__}"
    if isinstance(node, ast.Constant):
        # Of numbers, True is one for isinstance.
        return None if type(node.value) in (int, float) else f"{node.value!r:.80}"
    if isinstance(node, ast.Name):
        known = node.id in FUNCTIONS if is_called else node.id in CONSTANTS or _SYMBOL.fullmatch(node.id)
        return None if known else f"the name {node.id[:80]}"
    is_odd = isinstance(node, ast.Call) and (node.keywords or not isinstance(node.func, ast.Name))
    return "a call of no function" if is_odd else None


def disarm() -> None:
    """Put these in place of `eval`, `exec` and `parse_expr` in all of reasoning-gym that is loaded."""
    import sympy  # noqa: PLC0415  # takes a second, and the checks above need nothing of it
    from sympy.parsing import sympy_parser  # noqa: PLC0415  # likewise

    parse: Callable[..., Any] = sympy_parser.parse_expr

    def expression(text: str, *arguments: Any, **settings: Any) -> Any:
        return parse(checked_expression(text), *arguments, **settings)

    sympy.parse_expr = expression
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "reasoning_gym":
            continue
        held: Any = module
        held.eval, held.exec = plain_value, _refused
        if getattr(held, "parse_expr", None) is parse:
            held.parse_expr = expression


def _refused(*_: Any) -> None:
    raise ValueError("programs are not run here")
