"""A result by its value, for tests that make no difference of types; inside a sandbox, beside the driver.

Whoever calls this runs the value's own methods, so it is for the inside only.
"""

import json
import os
import sys
from typing import Any

if __package__:
    from papo.sandbox.transfer import DEEPEST, SCALARS, Untransferable, has, is_a, unwrapped
else:
    # Inside, it lies beside this file, and there is no package.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from transfer import DEEPEST, SCALARS, Untransferable, has, is_a, unwrapped


def plain(value: Any, depth: int = 0) -> Any:
    """What JSON can say: lists, dicts, text and numbers; and sets, which it cannot. Raises Untransferable."""
    if depth > DEEPEST:
        raise Untransferable(f"deeper than {DEEPEST}")
    base = next((base for base in SCALARS if isinstance(value, base)), None)
    if value is None or is_a(value, bool, *SCALARS):
        found = value
    elif base is not None:
        found = unwrapped(base, value)
    elif isinstance(value, dict):
        pairs: Any = dict[Any, Any].items(value)  # pyright: ignore[reportUnknownArgumentType]  # of anything
        found = {_json_key(key): plain(item, depth + 1) for key, item in pairs}
    elif isinstance(value, set | frozenset):
        found = {_hashable(plain(item, depth + 1)) for item in value}  # pyright: ignore[reportUnknownVariableType]
    else:
        found = _made_plain(value, depth)
    return found


def _made_plain(value: Any, depth: int) -> Any:
    number, listed = _number(value), getattr(value, "tolist", None)
    if number is not None:
        return number
    if callable(listed):
        # Scalars and arrays of numpy, `array.array`.
        return plain(listed(), depth + 1)
    if has(value, "__iter__") and not isinstance(value, type):
        return [plain(item, depth + 1) for item in value]
    raise Untransferable(f"no value: {type(value).__name__:.80}")


def _number(value: Any) -> int | float | None:
    """Of a Fraction or Decimal: the integer that it is, or the nearest float."""
    if type(value).__name__ not in ("Fraction", "Decimal") or not has(value, "as_integer_ratio"):
        return None
    try:
        above, below = value.as_integer_ratio()
    except (ValueError, OverflowError):
        return float(value)
    return above if below == 1 else float(value)


def _json_key(key: Any) -> str:
    """As `json.dumps` has it."""
    found = plain(key)
    if is_a(found, str):
        return found
    if found is None or is_a(found, bool, int, float):
        return json.dumps(found)
    raise Untransferable(f"a key is a {type(found).__name__}")


def _hashable(value: Any) -> Any:
    return tuple(_hashable(item) for item in value) if is_a(value, list) else value
