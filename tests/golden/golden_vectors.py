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


def cases(*names: str) -> list[tuple[str, dict[str, Any]]]:
    """The cases of some files, with the file's name."""
    return [(name, case) for name in names for case in load(name)["cases"]]


def label(part: object) -> str:
    """The id of a test: the file's name and the case's."""
    return part if isinstance(part, str) else str(part["name"]) if isinstance(part, dict) else repr(part)


def assert_peer(
    found: object, peer: str, case: dict[str, Any], output: str, *, mask: object = None, loose: float = 0.0
) -> None:
    """`found` is the peer's output (where `mask`), and differs from the wrong answer that the file has for one case.

    `loose` widens the file's tolerances, for a peer's own rounding that the test names.
    """
    file = load(peer)
    rtol, atol = max(file["rtol"], loose), max(file["atol"], loose)
    where = np.ones(np.shape(numbers(found)), dtype=np.bool_) if mask is None else numbers(mask) > 0
    expected = numbers(case["outputs"][output])
    np.testing.assert_allclose(numbers(found)[where], expected[where], rtol=rtol, atol=atol)
    wrong = file["wrong"]
    if (wrong["case"], wrong["output"]) == (case["name"], output):
        distinct = not np.allclose(numbers(wrong["value"])[where], expected[where], rtol=rtol, atol=atol)
        assert distinct, f"does not reject: {wrong['name']}"
