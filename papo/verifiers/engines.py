"""The engines behind the comparison: values at points (mpmath), sympy for limits and infinite sums, math-verify last.

They run in a worker only: nothing bounds their time but the worker's limit.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from papo.verifiers.exact import fold, without_quotients
from papo.verifiers.form import worth_asking
from papo.verifiers.functions import Undefined
from papo.verifiers.numeric import BITS, Evaluator, clearly_differ
from papo.verifiers.points import Undecided, equal_at_points, proportional_at_points
from papo.verifiers.syntax import Node, Op, Sym, TooLarge, walk

Importing = Callable[[], AbstractContextManager[None]]


class Engines:
    """All engines, for a worker. `importing` wraps the import of a library, whose time is no part of an answer's."""

    def __init__(self, importing: Importing = nullcontext) -> None:
        self._importing = importing

    def equal(self, gold: Node, answer: Node) -> bool:
        """Whether two expressions are equal. What is too large to be worked out equals only itself."""
        try:
            if clearly_differ(gold, answer):
                return False
            first, second = self._worked_out(gold), self._worked_out(answer)
            return first == second or equal_at_points(first, second)
        except (TooLarge, Undecided, Undefined):
            return False

    def close(self, gold: Node, answer: Node, *, tolerance: float, relative: float) -> bool:
        """Whether two numbers differ by at most a tolerance, absolute or relative to the reference."""
        try:
            use = Evaluator(BITS[0], {}, complex_values=False)
            first, second = use(self._worked_out(gold)), use(self._worked_out(answer))
        except (TooLarge, Undefined):
            return False
        # The bound itself counts as within: 0.1 is no binary number.
        return bool(abs(first - second) <= max(tolerance, relative * abs(first)) * (1 + 2.0**-40))

    def proportional(self, gold: Node, answer: Node, *, positive: bool) -> bool:
        """Whether one side is the other times a constant, denominators cleared where they may be."""
        try:
            if proportional_at_points(gold, answer, positive=positive):
                return True
            first, second = without_quotients(gold), without_quotients(answer)
            changed = (first, second) != (gold, answer)
            return changed and not positive and proportional_at_points(first, second, positive=False)
        except (TooLarge, Undecided, Undefined):
            return False

    def second_opinion(self, gold: str, answer: str) -> bool:
        """What math-verify says of an answer that the reader here cannot read, held to the same parts in both.

        On its own it accepts 5 = 7 for 7 and drops units; so it must agree in both directions.
        """
        if not worth_asking(gold, answer):
            return False
        with self._importing():
            from papo.verifiers.reader import same  # noqa: PLC0415 takes a second to import and is seldom needed
        return same(gold, answer) and same(answer, gold)

    def _worked_out(self, node: Node) -> Node:
        """The node with limits, integrals and infinite sums replaced by their values. Raises Undecided."""
        if not isinstance(node, Op):
            return node
        args = tuple(map(self._worked_out, node.args))
        found = Op(node.head, args)
        infinite = node.kind in ("sum", "prod") and any(_is_infinite(part) for part in args[:2])
        if node.kind not in ("lim", "int") and not infinite:
            return fold(found) if args != node.args else node
        with self._importing():
            from papo.verifiers import symbolic  # noqa: PLC0415 sympy takes a second to import and is seldom needed
        return symbolic.value_of(found)


def _is_infinite(node: Node) -> bool:
    return any(isinstance(part, Sym) and part.name == "infty" for part in walk(node))
