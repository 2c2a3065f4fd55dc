"""Items joined by commas, `and`, `or`: several values, one system of assignments, or conditions on one unknown."""

from papo.verifiers.regions import as_region, intersection, region
from papo.verifiers.syntax import Node, Op, Unreadable, shown


def several(head: str, items: list[Node]) -> Node:
    """Items joined by commas, `and`, `or`: several values, one system of assignments, or a union of regions.
    One value under two names, `1/2 or 0.5`, is that value."""
    if head == "or" and len(set(items)) == 1:
        return items[0]
    if head in ("or", "and") and (joined := _conditions(head, items)) is not None:
        return joined
    names = [item.parameter if isinstance(item, Op) and item.kind == "assign" else None for item in items]
    distinct = [name for name in dict.fromkeys(names) if name is not None]
    if len(distinct) > 1:
        if None in names or len(distinct) != len(names) or head == "or":
            raise Unreadable("several unknowns that do not make one system")
        return Op("system", tuple(sorted(items, key=shown)))
    if distinct and names[0] is None:
        raise Unreadable("a value before an assignment")
    values: list[Node] = []
    for item, name in zip(items, names, strict=True):
        value = item.args[0] if isinstance(item, Op) and name is not None else item
        values += value.args if isinstance(value, Op) and value.head == "several" else (value,)
    found = Op("several", tuple(values))
    return Op(f"assign:{distinct[0]}", (found,)) if distinct else found


def _conditions(head: str, items: list[Node]) -> Node | None:
    """x < 1 or x > 2 as one region; None where the items are no conditions on one unknown."""
    names = {item.parameter for item in items if isinstance(item, Op) and item.kind == "assign"}
    values = [item.args[0] if isinstance(item, Op) and item.kind == "assign" else item for item in items]
    if len(names) > 1 or not all(isinstance(value, Op) and value.head == "region" for value in values):
        return None
    found = as_region(values[0])
    for value in values[1:]:
        other = as_region(value)
        found = intersection(found, other) if head == "and" else as_region(region(*_pieces(found), *_pieces(other)))
    return Op(f"assign:{names.pop()}", (found,)) if names else found


def _pieces(found: Op) -> list[Op]:
    return [piece for piece in found.args if isinstance(piece, Op)]
