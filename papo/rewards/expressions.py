"""Arithmetic expressions of given numbers: a parser of its own with exact values, which evaluates nothing else."""

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from papo.rewards.structured import UnreadableError

LONGEST = 500
"""Characters; no answer of a puzzle needs more."""
DEEPEST = 40
_FORMS = (
    ("\\times", "*"), ("\\cdot", "*"), ("\\div", "/"), ("\\left", ""), ("\\right", ""), ("\\,", ""), ("\\ ", " "),
    ("×", "*"), ("·", "*"), ("⋅", "*"), ("∗", "*"), ("÷", "/"), ("−", "-"), ("–", "-"), ("（", "("), ("）", ")"),
    ("\\dfrac", "\\frac"), ("\\tfrac", "\\frac"), ("[", "("), ("]", ")"), ("$", ""),
)  # fmt: skip
_TOKENS = re.compile(r"\s*(?:(\d{1,40}(?:\.\d{1,40})?)|(\\frac|[-+*/(){}]))\s*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What an expression is worth, and the numbers it is made of, each as often as it stands there."""

    value: Fraction
    numbers: Counter[Fraction]


def evaluate(text: str) -> Worth:
    r"""Read `+ - * /`, parentheses and `\frac{a}{b}` over plain numbers, by the usual precedence, exactly.

    Raises UnreadableError for anything else: powers, functions, names, two numbers side by side, a division by zero.
    """
    if len(text) > LONGEST:
        raise UnreadableError(f"it is longer than {LONGEST} characters")
    for form, plain in _FORMS:
        text = text.replace(form, plain)
    reader = _Reader(_tokens(text))
    value = reader.sum(0)
    reader.end()
    return Worth(value=value, numbers=reader.numbers)


def _tokens(text: str) -> list[str]:
    tokens, at = list[str](), 0
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None:
            if not text[at:].strip():
                break
            raise UnreadableError(f"it has {text[at:].strip()[:1]!r}, which is no part of + - * / and numbers")
        tokens.append(match.group(1) or match.group(2))
        at = match.end()
    return tokens


class _Reader:
    """Recursive descent over tokens, counting the numbers it meets."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self.numbers: Counter[Fraction] = Counter()

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise UnreadableError(f"it goes on with {self._tokens[self._at]!r} where an operation was expected")

    def sum(self, depth: int) -> Fraction:
        if depth > DEEPEST:
            raise UnreadableError("it is nested too deeply")
        value = self._product(depth)
        while (sign := self._take("+", "-")) is not None:
            other = self._product(depth)
            value = value + other if sign == "+" else value - other
        return value

    def _product(self, depth: int) -> Fraction:
        value = self._signed(depth)
        while (sign := self._take("*", "/")) is not None:
            other = self._signed(depth)
            value = value * other if sign == "*" else _quotient(value, other)
        return value

    def _signed(self, depth: int) -> Fraction:
        sign = self._take("+", "-")
        value = self._atom(depth)
        return -value if sign == "-" else value

    def _atom(self, depth: int) -> Fraction:
        if self._take("("):
            return self._closed(depth, ")")
        if self._take("{"):
            return self._closed(depth, "}")
        if self._take("\\frac"):
            parts = [self._closed(depth, "}") for _ in range(2) if self._take("{")]
            if len(parts) < 2:
                raise UnreadableError("it has a \\frac without two groups")
            return _quotient(*parts)
        if self._at >= len(self._tokens) or not self._tokens[self._at][0].isdigit():
            raise UnreadableError("it lacks a number")
        value = Fraction(self._tokens[self._at])
        self._at += 1
        self.numbers[value] += 1
        return value

    def _closed(self, depth: int, close: str) -> Fraction:
        value = self.sum(depth + 1)
        if self._take(close) is None:
            raise UnreadableError(f"it lacks a {close!r}")
        return value

    def _take(self, *wanted: str) -> str | None:
        if self._at < len(self._tokens) and self._tokens[self._at] in wanted:
            self._at += 1
            return self._tokens[self._at - 1]
        return None


def _quotient(top: Fraction, bottom: Fraction) -> Fraction:
    if bottom == 0:
        raise UnreadableError("it divides by zero")
    return top / bottom
