"""References of reasoning-gym's problems are read or refused, never guessed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papo.gym.references import GymReference, read_reference, write_reference

REFERENCE = GymReference(task="chess", settings={"size": 3}, question="?", answer=None, metadata={"board": [[1]]})


def test_a_reference_comes_back_as_it_was_written() -> None:
    assert read_reference(write_reference(REFERENCE)) == REFERENCE


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        write_reference(GymReference(task="a", settings={}, question="?", answer="1", metadata={"x": float("nan")}))


@given(st.one_of(st.text(max_size=50), st.recursive(st.none() | st.integers(), st.lists).map(json.dumps)))
def test_any_other_text_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="it is no JSON"):
        read_reference(text)


def test_a_field_of_another_kind_is_named() -> None:
    held = json.loads(write_reference(REFERENCE)) | {"answer": 5}
    with pytest.raises(ValueError, match="answer"):
        read_reference(json.dumps(held))
