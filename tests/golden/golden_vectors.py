"""Reading golden vectors, and the rule that each of them rejects its own wrong answer."""

import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "vectors"


def load(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text())


def numbers(values: object) -> np.ndarray:
    """An array of float64; null and "NaN" are NaN, and a tensor gives its numbers."""
    return np.array(getattr(values, "tolist", lambda: values)(), dtype=np.float64)


def matches(found: object, expected: object, *, rtol: float, atol: float) -> bool:
    """Whether all known numbers of `expected` are met; null in it matches anything."""
    wanted = numbers(expected)
    known = ~np.isnan(wanted)
    return bool(np.allclose(numbers(found)[known], wanted[known], rtol=rtol, atol=atol))


def assert_golden(found: object, expected: object, wrong: dict[str, Any], *, rtol: float, atol: float) -> None:
    """`found` is the expected value, and the test is sharp enough to tell it from the wrong one."""
    np.testing.assert_allclose(
        np.where(np.isnan(numbers(expected)), np.nan, numbers(found)), numbers(expected), rtol=rtol, atol=atol
    )
    assert not matches(wrong["value"], expected, rtol=rtol, atol=atol), f"does not reject: {wrong['name']}"
