"""Sets of real numbers as pieces: intervals and points, from bracket notation or inequalities, put in order and joined.

A region is Op("region", pieces), a piece Op("interval:BOUNDS", (low, high)) with folded ends; a point is closed at both
ends. Ends are put in order by their float values; ends that are close are equal only if their forms are.
"""

from papo.verifiers.approximate import approximate
from papo.verifiers.exact import fold
from papo.verifiers.syntax import Node, Op, Sym, Unreadable, is_container

INFINITY = Sym("infty")
MINUS_INFINITY = fold(Op("neg", (INFINITY,)))
_CLOSE = 1e-9
_FLIPPED = {"<": ">", ">": "<", "≤": "≥", "≥": "≤", "=": "=", "≠": "≠"}
Piece = Op


def region(*pieces: Op) -> Op:
    """A region of these pieces, in order and joined where they touch. Raises Unreadable where ends have no order."""
    try:
        ordered = sorted(pieces, key=lambda piece: (approximate(piece.args[0]), piece.parameter[0] == "("))
        kept: list[Op] = []
        for piece in ordered:
            if _is_empty(piece):
                continue
            if kept and (joined := _joined(kept[-1], piece)) is not None:
                kept[-1] = joined
            else:
                kept.append(piece)
    except ValueError:
        raise Unreadable("an interval whose ends are no numbers") from None
    return Op("region", tuple(kept)) if kept else Op("set", ())


def interval(bounds: str, low: Node, high: Node) -> Op:
    """A piece; brackets at an infinity are round ones."""
    left = "(" if low == MINUS_INFINITY else bounds[0]
    right = ")" if high == INFINITY else bounds[1]
    return Op(f"interval:{left}{right}", (low, high))


def point(value: Node) -> Op:
    """A piece of one value."""
    return Op("interval:[]", (value, value))


REALS = Op("region", (interval("()", MINUS_INFINITY, INFINITY),))


def from_relation(signs: list[str], sides: list[Node]) -> Op | None:
    """The region of an inequality about one variable (x < 3, 1 ≤ x < 4, x ≠ 0); None if it is none of that kind."""
    variables = [place for place, side in enumerate(sides) if isinstance(side, Sym) and _has_no_value(side)]
    if len(variables) != 1 or any(sign not in _FLIPPED or sign == "=" for sign in signs) or len(sides) > 3:
        return None
    (place,) = variables
    if len(sides) == 3 and place != 1:
        return None
    found = REALS
    for index, sign in enumerate(signs):
        other = sides[index] if index != place else sides[index + 1]
        found = intersection(found, _half_line(_FLIPPED[sign] if index < place else sign, other))
    return found


def _has_no_value(symbol: Sym) -> bool:
    try:
        approximate(symbol)
    except ValueError:
        return True
    return False


def _half_line(sign: str, end: Node) -> Op:
    match sign:
        case "<" | "≤":
            return region(interval("(]" if sign == "≤" else "()", MINUS_INFINITY, end))
        case ">" | "≥":
            return region(interval("[)" if sign == "≥" else "()", end, INFINITY))
        case _:
            return region(interval("()", MINUS_INFINITY, end), interval("()", end, INFINITY))


def intersection(first: Op, second: Op) -> Op:
    """What is in both."""
    return region(*(_common(left, right) for left in first.args for right in second.args if _are_pieces(left, right)))


def without(first: Op, points: list[Node]) -> Op:
    """A region without some points."""
    for value in points:
        first = intersection(first, _half_line("≠", value))
    return first


def _are_pieces(*nodes: Node) -> bool:
    return all(isinstance(node, Op) for node in nodes)


def _common(left: Node, right: Node) -> Op:
    if not (isinstance(left, Op) and isinstance(right, Op)):
        raise Unreadable("no interval")
    low, low_bound = _later((left.args[0], left.parameter[0]), (right.args[0], right.parameter[0]), sign=1)
    high, high_bound = _later((left.args[1], left.parameter[1]), (right.args[1], right.parameter[1]), sign=-1)
    return interval(low_bound + high_bound, low, high)


def _later(first: tuple[Node, str], second: tuple[Node, str], *, sign: int) -> tuple[Node, str]:
    """The end that leaves less: the larger low one (sign 1), the smaller high one (sign −1); open if equal."""
    gap = _order(first[0], second[0]) * sign
    if gap:
        return first if gap > 0 else second
    return first if first[1] in "()" else second


def _order(first: Node, second: Node) -> float:
    if first == second:
        return 0.0
    try:
        gap = approximate(first) - approximate(second)
    except ValueError:
        raise Unreadable("an interval whose ends are no numbers") from None
    return 0.0 if abs(gap) < _CLOSE else gap


def _is_empty(piece: Op) -> bool:
    gap = _order(*piece.args)
    return gap > 0 or (gap == 0 and piece.parameter != "[]")


def _joined(first: Op, second: Op) -> Op | None:
    """Both as one piece, where they overlap or touch."""
    gap = _order(second.args[0], first.args[1])
    if gap > 0 or (gap == 0 and first.parameter[1] == ")" and second.parameter[0] == "("):
        return None
    longer = _order(second.args[1], first.args[1])
    high, bound = (second.args[1], second.parameter[1]) if longer > 0 else (first.args[1], first.parameter[1])
    if longer == 0 and "]" in (first.parameter[1], second.parameter[1]):
        bound = "]"
    return interval(first.parameter[0] + bound, first.args[0], high)


def as_region(node: Node) -> Op:
    """A region, an open interval written like a point, a finite set. Raises Unreadable."""
    if isinstance(node, Op):
        if node.head == "region":
            return node
        if node.head == "tuple" and len(node.args) == 2 and not any(map(is_container, node.args)):
            return region(interval("()", *node.args))
        if node.head == "set":
            return region(*map(point, node.args))
    raise Unreadable("no set of real numbers")
