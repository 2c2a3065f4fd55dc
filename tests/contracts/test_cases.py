"""Every case of the guarantees that applies so far is named in a test, as BUG-001 or bug_001."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CASES = {
    "loss_advantage": (1, 3, 4, 5, 6, 8, 9, 10, 12, 18, 19),
    "masking_padding": (20, 22, 24),
    "grouping_sampling": (25, 26, 27, 30, 31),
    "tokenization": (33, 34, 35, 37, 38, 39),
    "truncation": (40, 42),
    "checkpoint_resume": (93, 95, 96, 98, 100, 103),
    "data_schema": (129, 130, 132, 133, 134, 135),
    "reward_math": (52, 56, 57, 58, 59, 61, 138),
    "reward_format_hack": (63, 64),
    "reward_runtime": (66, 67, 68, 69, 70, 71),
    "code_sandbox": (72, 75, 76, 78, 80),
}
"""Left to later parts: 15, 16, 43, 101."""
NAMED = re.compile(r"(?i)bug[-_](\d{3}(?:(?:_and|, BUG|_|-)*[-_ ]?\d{3})*)")


def named_cases() -> set[int]:
    files = [path for path in TESTS.rglob("*") if path.suffix in (".py", ".json") and path != Path(__file__)]
    found = [NAMED.findall(path.read_text()) for path in files]
    return {int(number) for numbers in found for several in numbers for number in re.findall(r"\d{3}", several)}


@pytest.fixture(scope="module")
def named() -> set[int]:
    return named_cases()


@pytest.mark.parametrize("kind", CASES)
def test_each_case_of_a_kind_is_a_test(kind: str, named: set[int]) -> None:
    missing = [f"BUG-{number:03d}" for number in CASES[kind] if number not in named]
    assert not missing


def test_ids_are_found_in_both_spellings() -> None:
    text = "def test_bug_020_and_035_rows(): ... BUG-019 ... bug_104_and_106_x ... BUG-001-zero"
    numbers = [re.findall(r"\d{3}", several) for several in NAMED.findall(text)]
    assert numbers == [["020", "035"], ["019"], ["104", "106"], ["001"]]
