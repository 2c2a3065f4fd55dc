"""What MLflow takes of names, values and numbers."""

import math

from hypothesis import given
from hypothesis import strategies as st

from tasks.mlflow_names import NAME_LENGTH, VALUE_LENGTH, clean_name, clean_names, flatten, numbers, parameter_value


def test_ordinary_names_stay() -> None:
    for name in ("accuracy", "evaluation/accuracy", "seconds/generate", "optimizer.learning_rate", "a-b_c"):
        assert clean_name(name) == name


def test_odd_names_are_cleaned_and_the_mapping_is_kept() -> None:
    """BUG-127."""
    names = ["acc@k=8", "correct%", "αβγ", "n" * 300, "a//b", "", ".", "..", "/a", "a/", "a b", "a:b"]
    kept = clean_names(names)
    assert sorted(kept.values()) == sorted(names)
    for cleaned in kept:
        assert len(cleaned) <= NAME_LENGTH
        assert clean_name(cleaned) != cleaned, "what looks cleaned is cleaned again, so that no plain name meets it"


@given(st.lists(st.text(max_size=300), unique=True, max_size=20))
def test_no_two_names_meet(names: list[str]) -> None:
    assert len({clean_name(name) for name in names}) == len(names)


def test_leaves_are_text() -> None:
    config = {"a": {"b": 1, "c": {"d": None}}, "e": [1, "x"], "f": "text", "g": "", "h": {}}
    assert flatten(config) == {"a.b": "1", "a.c.d": "null", "e": '[1, "x"]', "f": "text", "g": '""', "h": "{}"}


def test_long_values_become_a_hash() -> None:
    assert parameter_value("x" * VALUE_LENGTH) == "x" * VALUE_LENGTH
    assert parameter_value("x" * (VALUE_LENGTH + 1)).startswith("sha256:")


def test_only_finite_numbers_are_metrics() -> None:
    finite, skipped = numbers({"a": 1, "b": True, "c": None, "d": math.nan, "e": math.inf, "f": "text", "g": 0.5})
    assert (finite, skipped) == ({"a": 1.0, "b": 1.0, "g": 0.5}, 4)
