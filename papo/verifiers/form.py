"""The engine of the calling process, which has none: it says where form alone does not decide."""

import re

from papo.verifiers.cleaning import clean
from papo.verifiers.syntax import Node

_LONGEST = 500
"""Characters of what math-verify is given."""


class NeedsEngine(Exception):
    """Form alone does not decide, and only form was asked."""


class FormOnly:
    """The engine of the calling process: it has none and says so."""

    def equal(self, gold: Node, answer: Node) -> bool:
        raise NeedsEngine

    def close(self, gold: Node, answer: Node, *, tolerance: float, relative: float) -> bool:
        raise NeedsEngine

    def proportional(self, gold: Node, answer: Node, *, positive: bool) -> bool:
        raise NeedsEngine

    def second_opinion(self, gold: str, answer: str) -> bool:
        if not worth_asking(gold, answer):
            return False
        raise NeedsEngine


def worth_asking(gold: str, answer: str) -> bool:
    """Whether both are made of the same numbers, letters, commands and signs: only their order is in question then."""
    return max(len(gold), len(answer)) <= _LONGEST and _parts(gold) == _parts(answer)


def _parts(text: str) -> list[str]:
    return sorted(re.findall(r"\d+|\\?[A-Za-z]+|[^\s{}()\[\]\\]", clean(text)))
