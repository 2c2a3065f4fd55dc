"""From the tree of a text to the kind of answer it is.

expression · several (an unordered list: roots, ± values) · set · region (intervals, inequalities) · tuple · matrix ·
assign:NAME (x = 5, f(x) = x²) · system (x = 1, y = 2) · rel (equations and inequalities as they stand) · unit:NAME ·
percent · text · ratio · clock · based (a numeral with its base) · chained (2^3 = 8: all sides must agree).
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from papo.verifiers.exact import fold
from papo.verifiers.joining import several
from papo.verifiers.parsing import parse
from papo.verifiers.quantities import renamed
from papo.verifiers.regions import INFINITY, MINUS_INFINITY, as_region, from_relation, intersection, interval, region
from papo.verifiers.regions import without as region_without
from papo.verifiers.syntax import Node, Num, Op, Sym, Unreadable, is_container, shown, symbols_of, walk
from papo.verifiers.texts import PLACES, value_of_text
from papo.verifiers.undefined import refuse_undefined
from papo.verifiers.units import is_known

_PLAIN_NUMBER = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?")
MOST_WORDS = 3
"""Words of a text that can be a reference answer: a name, a direction, a choice. More is prose."""


@lru_cache(maxsize=4096)
def read(text: str) -> Node:
    """The answer that a text is. Raises Unreadable."""
    if _PLAIN_NUMBER.fullmatch(text):
        return Num(Fraction(text))
    try:
        return classify(parse(text))
    except RecursionError:
        raise Unreadable("nested too deep") from None


def read_renamed(text: str, name: str, other: str) -> Node:
    """The answer that a text is, with another name for a letter, unless that name is taken. Raises Unreadable."""
    tree = parse(text)
    taken = name == other or other in symbols_of(tree)
    return read(text) if taken else classify(renamed(tree, {name: other}))


def classify(tree: Node) -> Node:
    """A tree as one of the kinds of answers."""
    if not isinstance(tree, Op):
        return PLACES.get(tree, tree)
    if tree.head == "paren" and is_container(tree.args[0]):
        return classify(tree.args[0])
    if (rule := _KINDS.get(tree.kind)) is not None:
        return rule(tree)
    if any(isinstance(part, Op) and part.head in ("pm", "mp") for part in walk(tree)):
        return _plus_minus(tree)
    if tree.kind in ("mul", "neg") and (scaled := _scaled(tree)) is not None:
        return scaled
    _refuse_containers(tree)
    refuse_undefined(tree)
    return fold(tree)


def _refuse_containers(tree: Op) -> None:
    for part in walk(tree):
        if is_container(part) and isinstance(part, Op) and part.kind not in ("tuple", "matrix", "percent"):
            if part.kind == "unit" and part.parameter == "degree":
                continue
            raise Unreadable(f"{part.kind} inside an expression")


def _scaled(tree: Op) -> Node | None:
    """A number times a matrix or a vector, entry by entry; None for any other product."""
    places = [part for part in tree.args if isinstance(part, Op) and part.kind in ("matrix", "vector")]
    if len(places) != 1:
        return None
    sign = (Num(Fraction(-1)),) if tree.kind == "neg" else ()
    factors = sign + tuple(part for part in tree.args if part is not places[0])
    return Op(places[0].head, tuple(classify(Op("mul", (*factors, entry))) for entry in places[0].args))


def _plus_minus(tree: Op) -> Node:
    """Both values of an expression with ±, whose signs go together."""
    upper, lower = (classify(_signed(tree, positive)) for positive in (True, False))
    return Op("several", (upper, lower)) if upper != lower else upper


def _signed(node: Node, positive: bool) -> Node:
    if not isinstance(node, Op):
        return node
    args = tuple(_signed(part, positive) for part in node.args)
    if node.head in ("pm", "mp"):
        return args[0] if positive == (node.head == "pm") else Op("neg", args)
    return Op(node.head, args)


def _tuple(tree: Op) -> Node:
    items = tuple(map(classify, tree.args))
    if len(items) == 2 and (INFINITY in items or MINUS_INFINITY in items):
        return region(interval("()", *items))
    return Op("tuple", items)


def _set(tree: Op) -> Node:
    found: list[Node] = []
    for item in map(classify, tree.args):
        found += item.args if isinstance(item, Op) and item.head == "several" else (item,)
    return Op("set", tuple(dict.fromkeys(found)))


def _interval(tree: Op) -> Node:
    low, high = map(fold, tree.args)
    if tree.parameter == "[]" and symbols_of(low) | symbols_of(high):
        return Op("tuple", (low, high))
    return region(interval(tree.parameter, low, high))


def _union(tree: Op) -> Node:
    parts = [classify(part) for part in tree.args]
    if all(isinstance(part, Op) and part.head == "set" for part in parts):
        return Op("set", tuple(dict.fromkeys(item for part in parts if isinstance(part, Op) for item in part.args)))
    return region(*(piece for part in parts for piece in as_region(part).args if isinstance(piece, Op)))


def _intersection(tree: Op) -> Node:
    return intersection(*(as_region(classify(part)) for part in tree.args))


def _difference(tree: Op) -> Node:
    whole, removed = (classify(part) for part in tree.args)
    if not (isinstance(removed, Op) and removed.head == "set"):
        raise Unreadable("a difference of sets that are not finite")
    if isinstance(whole, Op) and whole.head == "set":
        return Op("set", tuple(item for item in whole.args if item not in removed.args))
    return region_without(as_region(whole), list(removed.args))


def _relation(tree: Op) -> Node:
    signs = tree.parameter.split()
    if signs == ["∈"]:
        name = label_of(tree.args[0])
        found = classify(tree.args[1])
        return found if name is None else Op(f"assign:{name}", (found,))
    if set(signs) <= {"=", "≈"}:
        return _equality(signs, tree.args)
    if any(map(is_container, tree.args)):
        raise Unreadable("a relation between things that are no numbers")
    sides = list(map(fold, tree.args))
    found = from_relation(signs, sides)
    if found is None:
        return Op(tree.head, tuple(sides))
    name = next(side.name for side in sides if isinstance(side, Sym) and symbols_of(side))
    return Op(f"assign:{name}", (found,))


def _equality(signs: list[str], sides: tuple[Node, ...]) -> Node:
    name = label_of(sides[0])
    if name is None and len(sides) == 2 and label_of(sides[1]) is not None and isinstance(sides[1], Sym):
        sides, name = (sides[1], sides[0]), sides[1].name
    if name is not None and len(sides) == 2:
        value = classify(sides[1])
        if name not in symbols_of(value):
            return Op(f"assign:{name}", (value,))
    if name is not None and len(sides) > 2:
        return Op(f"assign:{name}", (_equality(signs[1:], sides[1:]),))
    values = tuple(map(classify, sides))
    if len(sides) == 2 and signs == ["="] and frozenset[str]().union(*map(symbols_of, values)):
        return Op("rel:=", values)
    return Op(f"chained:{' '.join(signs)}", values)


def label_of(side: Node) -> str | None:
    """The name on the left of x = …, f(x) = …, (x, y) = …"""
    if isinstance(side, Sym):
        return side.name if symbols_of(side) else None
    if not isinstance(side, Op):
        return None
    if side.head == "tuple" and all(isinstance(part, Sym) for part in side.args):
        return f"({','.join(part.name for part in side.args if isinstance(part, Sym))})"
    if side.head == "mul" and len(side.args) == 2 and isinstance(side.args[0], Sym):
        inner = side.args[1]
        if isinstance(inner, Op) and inner.head in ("paren", "tuple") and not any(map(is_container, inner.args)):
            return f"{side.args[0].name}({','.join(shown(fold(part)) for part in inner.args)})"
    return None


def _joined(tree: Op) -> Node:
    return several(tree.head, [classify(part) for part in tree.args])


def _unit(tree: Op) -> Node:
    inner = classify(tree.args[0])
    if isinstance(inner, Op) and inner.kind == "unit":
        return (
            inner if inner.parameter == tree.parameter else Op(f"unit:{inner.parameter} {tree.parameter}", inner.args)
        )
    if isinstance(inner, Op) and inner.head == "several":
        return Op("several", tuple(Op(tree.head, (value,)) for value in inner.args))
    if isinstance(inner, Op) and is_container(inner) and inner.head != "percent":
        raise Unreadable(f"a unit behind a {inner.kind}")
    if symbols_of(inner) and not is_known(tree.parameter):
        raise Unreadable(f"the words {tree.parameter!r} behind an expression")
    return Op(tree.head, (inner,))


def _percent(tree: Op) -> Node:
    inner = classify(tree.args[0])
    if isinstance(inner, Op) and inner.head == "several":
        return Op("several", tuple(Op("percent", (value,)) for value in inner.args))
    if is_container(inner):
        raise Unreadable("a percentage of no number")
    return Op("percent", (inner,))


def _kept(tree: Op) -> Node:
    return Op(tree.head, tuple(map(classify, tree.args)))


_KINDS: dict[str, Callable[[Op], Node]] = {
    "tuple": _tuple, "vector": _kept, "set": _set,
    "interval": _interval, "cup": _union, "cap": _intersection, "minus": _difference, "rel": _relation,
    "list": _joined, "or": _joined, "and": _joined, "unit": _unit, "text": value_of_text, "percent": _percent,
    "matrix": _kept, "ratio": _kept, "clock": _kept, "based": _kept, "pmod": _kept,
}  # fmt: skip
