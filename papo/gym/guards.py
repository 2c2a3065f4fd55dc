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
_NAME = re.compile(r"[^\W\d]\w*")
_CALLED = re.compile(r"([^\W\d]\w*)\s*\(")
_ALLOWED = re.compile(r"(?:[\w\s+\-*/^(),]|(?<=\d)\.|\.(?=\d))*")


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
    """`text` itself, if it is arithmetic with names and FUNCTIONS. Raises ValueError."""
    if len(text) > LONGEST or not _ALLOWED.fullmatch(text):
        raise ValueError("it holds a character that no plain expression has")
    if any("__" in name or name.startswith("_") for name in _NAME.findall(text)):
        raise ValueError("it holds a private name")
    called = set(_CALLED.findall(text)) - FUNCTIONS
    if called:
        raise ValueError(f"it calls {', '.join(sorted(called))[:80]}, which no plain expression does")
    return text


def disarm() -> None:
    """Put these in place of `eval`, `exec` and `parse_expr` in all of reasoning-gym that is loaded."""
    import sympy  # noqa: PLC0415
    from sympy.parsing import sympy_parser  # noqa: PLC0415

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
