"""Limits, integrals and infinite sums by sympy, from a tree to a tree. Imported in a worker, when first needed."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy

from papo.verifiers.exact import fold
from papo.verifiers.points import Undecided
from papo.verifiers.syntax import Node, Num, Op, Sym

_CONSTANTS: dict[str, Any] = {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "infty": sympy.oo}
_FUNCTIONS: dict[str, Any] = {
    name: getattr(sympy, name)
    for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sign", "exp")
} | {"arcsin": sympy.asin, "arccos": sympy.acos, "arctan": sympy.atan}
_BACK: dict[Any, str] = {rule: name for name, rule in _FUNCTIONS.items()}


def value_of(node: Op) -> Node:
    """The value of a limit, an integral, an infinite sum or product. Raises Undecided where sympy finds none."""
    try:
        found: Any = _built(node).doit()
        return fold(_tree(sympy.simplify(found)))
    except (ValueError, TypeError, NotImplementedError, AttributeError, ZeroDivisionError) as error:
        raise Undecided(f"sympy: {type(error).__name__}") from None


def _built(node: Op) -> Any:
    variable: Any = sympy.Symbol(node.parameter, real=True)
    *bounds, body = map(_sympy, node.args)
    if node.kind == "lim":
        return sympy.Limit(body, variable, bounds[0])
    maker: Any = {"int": sympy.Integral, "sum": sympy.Sum}.get(node.kind, sympy.Product)
    return maker(body, (variable, *bounds))


def _sympy(node: Node) -> Any:
    if isinstance(node, Num):
        return sympy.Rational(node.value.numerator, node.value.denominator)
    if isinstance(node, Sym):
        return _CONSTANTS.get(node.name) or sympy.Symbol(node.name, real=True)
    if node.kind in ("lim", "int", "sum", "prod"):
        return _built(node)
    parts = [_sympy(part) for part in node.args]
    if node.kind == "call" and node.parameter in _FUNCTIONS and len(parts) == 1:
        return _FUNCTIONS[node.parameter](*parts)
    rule = _RULES.get(node.head)
    if rule is None:
        raise Undecided(f"sympy has no {node.head}")
    return rule(*parts)


def _power(base: Any, exponent: Any) -> Any:
    """Powers of numbers stay unevaluated: a tower would never end."""
    return sympy.Pow(base, exponent, evaluate=not (base.is_number and exponent.is_number))


def _log(base: Any, argument: Any) -> Any:
    return sympy.log(argument) / sympy.log(base)


def _factorial(inner: Any) -> Any:
    return sympy.factorial(inner, evaluate=not inner.is_number)


def _binomial(top: Any, bottom: Any) -> Any:
    return sympy.binomial(top, bottom, evaluate=not top.is_number)


_RULES: dict[str, Callable[..., Any]] = {
    "add": sympy.Add,
    "mul": sympy.Mul,
    "pow": _power,
    "log": _log,
    "fact": _factorial,
    "binom": _binomial,
    "abs": sympy.Abs,
    "floor": sympy.floor,
    "ceil": sympy.ceiling,
}


def _tree(found: Any) -> Node:
    """A closed form of sympy as a tree. Raises Undecided."""
    if found.is_Rational:
        return Num(Fraction(int(found.p), int(found.q)))
    for name, constant in _CONSTANTS.items():
        if found == constant:
            return Sym(name)
    if found.is_Symbol:
        return Sym(str(found))
    heads = {sympy.Add: "add", sympy.Mul: "mul", sympy.Pow: "pow", sympy.Abs: "abs", sympy.factorial: "fact"}
    head = heads.get(found.func) or (f"call:{_BACK[found.func]}" if found.func in _BACK else None)
    if found.func == sympy.log:
        return Op("log", (Sym("e"), _tree(found.args[0])))
    if found.func == sympy.exp:
        return Op("pow", (Sym("e"), _tree(found.args[0])))
    if head is None:
        raise Undecided(f"sympy leaves {found.func.__name__}")
    return Op(head, tuple(map(_tree, found.args)))
