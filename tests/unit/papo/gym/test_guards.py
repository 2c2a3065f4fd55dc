"""What stands in for `eval` in reasoning-gym's scorers: values come through, programs do not."""

import pytest

from papo.gym.guards import checked_expression, plain_value

VALUES = [
    ("[1, 2, 3]", [1, 2, 3]),
    ("['Q', '_']", ["Q", "_"]),
    ("2 + 3*4", 14),
    ("(1, {2: -3})", (1, {2: -3})),
    ("0x1f & 3", 3),
]
PROGRAMS = [
    "__import__('os').system('true')",
    "().__class__.__base__.__subclasses__()",
    "[x for x in (1,)]",
    "(lambda: 1)()",
    "open('x')",
    "answer",
    "f'{1}'",
    "[1][0]",
    "1 if 1 else 2",
    "x := 1",
    "",
    "(" * 500,
    "1" * 20_000,
]
EXPRESSIONS = [
    "(3 + 4)*2 - 1/2",
    "x**3/3 + C",
    "sin(2*x) + exp(-x)",
    "2.5*x",
    "sqrt(2)",
    ".5 + 1.",
    "-log(Abs(x)) + C1 + E*pi",
]
ATTACKS = [
    "__import__('os')",
    "x.__class__",
    "Integer(1).func",
    "preview(x)",
    "sympify('1')",
    "lambdify(x, x)",
    "eval(1)",
    "getattr(x, y)",
    "test()",
    'x["a"]',
    "x; y",
    "x\\u002e",
    "x = 1",
    "_private",
    "1" * 20_000,
    "(eval)((chr)(49) + (chr)(50))",
    "((chr))(49)",
    "(open)(0)",
    "Max(exit)",
    "Integer(1)(2)",
    "(atan2.mro)()",
    "atan2.mro",
    "x1.func",
    "3 or 4",
    "x if x else 3",
    "not x",
    "Max(x for x in x)",
    "Max(x, key=x)",
    "Max(*x)",
    "sin",
    "True",
    "nan",
    "zoo",
    "oo",
    "1j",
    "3 < 4",
    "3 ^ 4",
    "(1, 2)",
    "",
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_values_and_their_arithmetic_are_read(text: str, value: object) -> None:
    assert plain_value(text) == value


@pytest.mark.parametrize("text", PROGRAMS)
def test_nothing_else_is(text: str) -> None:
    with pytest.raises(ValueError, match="it "):
        plain_value(text)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_pass(text: str) -> None:
    assert checked_expression(text) == text


@pytest.mark.parametrize("text", ATTACKS)
def test_what_sympy_would_evaluate_beside_them_does_not(text: str) -> None:
    with pytest.raises(ValueError, match="it "):
        checked_expression(text)
