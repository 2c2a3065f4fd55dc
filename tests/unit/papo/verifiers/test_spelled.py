"""Numbers in words, and what is none."""

from fractions import Fraction

import pytest

from papo.verifiers.spelled import spelled_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("zero", 0), ("seven", 7), ("Twenty-Five", 25), ("twenty five", 25), ("one hundred", 100), ("ninety-nine", 99),
        ("one hundred and five", 105), ("two thousand three hundred forty-one", 2341), ("twelve hundred", 1200),
        ("three million and one", 3_000_001), ("one half", Fraction(1, 2)), ("two-thirds", Fraction(2, 3)),
    ],
)  # fmt: skip
def test_a_number_in_words(text: str, value: int | Fraction) -> None:
    assert spelled_number(text) == (value, len(text))


@pytest.mark.parametrize(
    ("text", "value", "rest"),
    [
        ("six seven", 6, " seven"), ("five and six", 5, " and six"), ("twenty thirty", 20, " thirty"),
        ("eight dogs", 8, " dogs"), ("one thousand million", 1000, " million"), ("forty zero", 40, " zero"),
        ("one thousand two million", 1002, " million"), ("twenty and five", 20, " and five"),
    ],
)  # fmt: skip
def test_it_ends_where_no_number_goes_on(text: str, value: int, rest: str) -> None:
    assert spelled_number(text) == (value, len(text) - len(rest))


@pytest.mark.parametrize("text", ["", "hundred", "dozen", "two-digit", "tenfold", "one's", "and five", "many", "-five"])
def test_what_is_no_number(text: str) -> None:
    assert spelled_number(text) is None
