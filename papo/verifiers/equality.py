"""Whether two answers are the same, by their kind. The reference is always the first argument.

What form alone decides is decided here; whether two expressions are equal is asked of an engine. Two kinds that have
nothing to do with each other are different answers; an answer that leaves a choice is not the reference.
"""

from collections.abc import Sequence
from itertools import permutations

from papo.verifiers.approximate import roughly_equal
from papo.verifiers.exact import equal_by_form, fold
from papo.verifiers.quantities import (
    free_constants,
    is_integration,
    named_value,
    radians,
    renamed,
    roots_of,
    times,
    with_unit,
    with_variable_of,
    without_percent,
)
from papo.verifiers.regions import as_region
from papo.verifiers.relations import difference, minus, standard
from papo.verifiers.rules import Engine, Rules
from papo.verifiers.syntax import Node, Op, Sym, Unreadable, is_container, number, symbols_of
from papo.verifiers.units import is_neutral, measure

MOST_ITEMS = 200
"""Items of a list that are matched one with another; longer lists are compared in order."""


class Comparison:
    def __init__(self, engine: Engine, rules: Rules) -> None:
        self._engine = engine
        self._rules = rules

    def same(self, gold: Node, answer: Node) -> bool:
        """Whether `answer` is `gold`."""
        if gold == answer:
            return True
        first = gold.kind if isinstance(gold, Op) else ""
        second = answer.kind if isinstance(answer, Op) else ""
        for name, rule in (
            ("chained", self._chained), ("assign", self._assigned), ("percent", self._percent), ("unit", self._units),
            ("region", self._regions), ("system", self._systems), ("several", self._several), ("set", self._sets),
            ("ratio", self._ratios),
        ):  # fmt: skip
            if name in (first, second):
                return rule(gold, answer)
        if isinstance(gold, Op) and isinstance(answer, Op) and is_container(gold) and is_container(answer):
            return self._structures(gold, answer)
        if isinstance(answer, Op) and answer.head == "rel:=" and not is_container(gold):
            return self._quantity(gold, answer)
        return not (is_container(gold) or is_container(answer)) and self._expressions(gold, answer)

    def _expressions(self, gold: Node, answer: Node) -> bool:
        rules = self._rules
        found = equal_by_form(gold, answer)
        if found is not None and not (found is False and (rules.tolerance or rules.relative_tolerance)):
            return found
        if rules.tolerance or rules.relative_tolerance:
            return self._engine.close(
                gold, answer, tolerance=rules.tolerance, relative=rules.relative_tolerance
            ) or self._engine.equal(gold, answer)
        return self._engine.equal(gold, answer) or self._renamed(gold, answer)

    def _renamed(self, gold: Node, answer: Node) -> bool:
        """Equal but for the names of constants of integration."""
        ours, theirs = sorted(free_constants(gold)), sorted(free_constants(answer))
        variables = symbols_of(gold) - set(ours)
        alike = bool(variables) and variables == symbols_of(answer) - set(theirs) and len(ours) == len(theirs) < 4
        if not alike or ours == theirs or not is_integration(ours):
            return False
        return any(
            self._engine.equal(gold, fold(renamed(answer, dict(zip(order, ours, strict=True)))))
            for order in permutations(theirs)
        )

    def _chained(self, gold: Node, answer: Node) -> bool:
        """2^3 = 8 is an answer if its sides agree; 22/7 ≈ 3.14 stands for either, if they are close."""
        golds, answers = self._consistent(gold), self._consistent(answer)
        return any(self.same(ours, theirs) for ours in golds for theirs in answers)

    def _consistent(self, node: Node) -> list[Node]:
        if not (isinstance(node, Op) and node.kind == "chained"):
            return [node]
        kept = [node.args[0]]
        for sign, side in zip(node.parameter.split(), node.args[1:], strict=True):
            if sign == "=" and not self.same(kept[-1], side):
                return []
            if sign == "≈" and not all(roughly_equal(value, side) for value in kept):
                return []
            if sign == "≈":
                kept.append(side)
        return kept

    def _assigned(self, gold: Node, answer: Node) -> bool:
        (name, ours), (other, theirs) = (named_value(node) for node in (gold, answer))
        if name is not None and other is not None and name.casefold() != other.casefold():
            same_function = with_variable_of(name, other, theirs)
            return self._lines(gold, answer) if same_function is None else self.same(ours, same_function)
        for side, letter, value in ((gold, other, theirs), (answer, name, ours)):
            if isinstance(side, Op) and side.head == "rel:=" and letter is not None:
                pair = (difference(side), minus(Sym(letter), value))
                return not is_container(value) and self._engine.proportional(*pair, positive=False)
        return self.same(ours, theirs)

    def _quantity(self, gold: Node, answer: Op) -> bool:
        """x + y = 5 for 5: what was asked, named by an expression of several unknowns; no equation to be solved."""
        left, right = answer.args
        numbers = not (symbols_of(gold) or symbols_of(right))
        return numbers and len(symbols_of(left)) > 1 and self.same(gold, right)

    def _lines(self, gold: Node, answer: Node) -> bool:
        """y = 2x as x = y/2."""
        sides = [minus(Sym(node.parameter), node.args[0]) for node in (gold, answer) if isinstance(node, Op)]
        plain = not any(is_container(node.args[0]) for node in (gold, answer) if isinstance(node, Op))
        return plain and len(symbols_of(sides[0])) > 1 and self._engine.proportional(sides[0], sides[1], positive=False)

    def _percent(self, gold: Node, answer: Node) -> bool:
        (ours, marked), (theirs, also) = (without_percent(node) for node in (gold, answer))
        if marked and also:
            return self.same(ours, theirs)
        if is_container(ours if marked else gold) or is_container(theirs if also else answer):
            return False
        if self._rules.percent == "unit" and self.same(ours, theirs):
            return True
        return self.same(fold(gold), fold(answer))

    def _units(self, gold: Node, answer: Node) -> bool:
        (ours, unit), (theirs, other) = (with_unit(node) for node in (gold, answer))
        if unit is None or other is None or is_neutral(unit) or is_neutral(other):
            if self.same(ours, theirs):
                return True
            turned = [radians(value, name) for value, name in ((ours, unit), (theirs, other))]
            return (turned[0] is None) != (turned[1] is None) and self.same(turned[0] or ours, turned[1] or theirs)
        (dimension, factor), (their_dimension, their_factor) = measure(unit), measure(other)
        if dimension != their_dimension:
            turned = [radians(value, name) or value for value, name in ((ours, unit), (theirs, other))]
            return {name for name, _ in (*dimension, *their_dimension)} == {"angle", "turn"} and self.same(*turned)
        return self.same(times(ours, factor), times(theirs, their_factor))

    def _regions(self, gold: Node, answer: Node) -> bool:
        try:
            first, second = as_region(gold), as_region(answer)
        except Unreadable:
            return False
        return len(first.args) == len(second.args) and all(
            ours.head == theirs.head and all(map(self.same, ours.args, theirs.args))
            for ours, theirs in zip(_ops(first), _ops(second), strict=True)
        )

    def _several(self, gold: Node, answer: Node) -> bool:
        if not (isinstance(gold, Op) and isinstance(answer, Op)):
            return False
        if "set" in (gold.head, answer.head):
            return self._sets(gold, answer)
        return gold.head == answer.head and self._matched(gold.args, answer.args)

    def _sets(self, gold: Node, answer: Node) -> bool:
        if not (isinstance(gold, Op) and isinstance(answer, Op)) or {gold.head, answer.head} - {"set", "several"}:
            return False
        return self._matched(list(dict.fromkeys(gold.args)), list(dict.fromkeys(answer.args)))

    def _matched(self, gold: Sequence[Node], answer: Sequence[Node]) -> bool:
        """Whether each item of one list has its own equal in the other."""
        if len(gold) != len(answer):
            return False
        if len(gold) > MOST_ITEMS:
            return all(map(self.same, gold, answer))
        left = list(answer)
        unmatched = [item for item in gold if not _took(left, item)]
        for item in unmatched:
            place = next((place for place, other in enumerate(left) if self.same(item, other)), None)
            if place is None:
                return False
            del left[place]
        return True

    def _systems(self, gold: Node, answer: Node) -> bool:
        """x = 1, y = 2 by its names, or as the point (1, 2) in the order of the names."""
        if not (isinstance(gold, Op) and isinstance(answer, Op)) or len(gold.args) != len(answer.args):
            return False
        if {gold.head, answer.head} <= {"system", "several", "set"} and gold.head != answer.head:
            roots = [roots_of(node) for node in (gold, answer)]
            return all(roots) and self._matched(*roots)
        if gold.head == answer.head and [item.head for item in _ops(gold)] != [item.head for item in _ops(answer)]:
            return False
        if {gold.head, answer.head} - {"system", "tuple", "vector"}:
            return False
        values = [
            [item.args[0] for item in _ops(node)] if node.head == "system" else node.args for node in (gold, answer)
        ]
        return all(map(self.same, *values))

    def _ratios(self, gold: Node, answer: Node) -> bool:
        ours, theirs = (
            node.args if isinstance(node, Op) and node.head == "ratio" else (node, number(1)) for node in (gold, answer)
        )
        if len(ours) != len(theirs) or any(map(is_container, (*ours, *theirs))):
            return False
        return all(
            self._expressions(fold(Op("mul", (ours[0], second))), fold(Op("mul", (theirs[0], first))))
            for first, second in zip(ours[1:], theirs[1:], strict=True)
        )

    def _structures(self, gold: Op, answer: Op) -> bool:
        if gold.kind == "rel" and answer.kind == "rel":
            return self._relations(gold, answer)
        if gold.kind == answer.kind == "clock":
            suffixes = {gold.parameter, answer.parameter} - {""}
            return len(suffixes) < 2 and gold.args == answer.args
        if {_shape(gold), _shape(answer)} <= {"tuple", "vector"} or (
            gold.kind == "matrix" and gold.head == answer.head
        ):
            return len(gold.args) == len(answer.args) and all(map(self.same, gold.args, answer.args))
        return False

    def _relations(self, gold: Op, answer: Op) -> bool:
        first, second = standard(gold), standard(answer)
        if first is None or second is None or first[0] != second[0]:
            return False
        return self._engine.proportional(first[1], second[1], positive=first[0] in "<≤")


def _took(items: list[Node], item: Node) -> bool:
    if item not in items:
        return False
    items.remove(item)
    return True


def _ops(node: Op) -> list[Op]:
    return [item for item in node.args if isinstance(item, Op)]


def _shape(node: Op) -> str:
    """A column is a vector."""
    return "vector" if node.kind == "matrix" and node.parameter == str(len(node.args)) else node.kind
