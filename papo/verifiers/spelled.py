"""Numbers in English words: twenty-five, one hundred and five, two thirds."""

import re
from fractions import Fraction

_UNITS = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
_TENS = {
    word: 10 * value
    for value, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2
    )
}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS = {
    word: value
    for value, names in enumerate(
        [
            "half halves",
            "third thirds",
            "fourth fourths quarter quarters",
            "fifth fifths",
            "sixth sixths",
            "seventh sevenths",
            "eighth eighths",
            "ninth ninths",
            "tenth tenths",
        ],
        start=2,
    )
    for word in names.split()
} | {"hundredth": 100, "hundredths": 100}
_WORD = re.compile(r"(\s*-\s*|\s+|)([A-Za-z]+)")
_GOES_ON = re.compile(r"-[A-Za-z]|[A-Za-z']")


def spelled_number(text: str, start: int = 0) -> tuple[Fraction, int] | None:
    """The number whose words begin at `start`, and where it ends; None where no number begins."""
    total, current, last, end, smallest = 0, 0, "", start, 10**15
    pending = False
    at = start
    while (match := _WORD.match(text, at)) and (at == start) == (not match.group(1)):
        word = match.group(2).lower()
        if word == "and" and last in ("hundred", "scale") and not pending:
            pending, at = True, match.end()
            continue
        if word in _UNITS and (last in ("", "hundred", "scale") or (last == "tens" and 0 < _UNITS[word] < 10)):
            current, last = current + _UNITS[word], "unit"
        elif word in _TENS and last in ("", "hundred", "scale"):
            current, last = current + _TENS[word], "tens"
        elif word == "hundred" and last in ("unit", "tens") and 0 < current < 100:
            current, last = 100 * current, "hundred"
        elif word in _SCALES and current and last != "scale" and _SCALES[word] < smallest:
            total, current, last, smallest = total + current * _SCALES[word], 0, "scale", _SCALES[word]
        elif word in _PARTS and last in ("unit", "tens") and not pending:
            return _whole_word(text, match.end(), Fraction(total + current, _PARTS[word]))
        else:
            break
        pending, at = False, match.end()
        end = at
    return _whole_word(text, end, Fraction(total + current)) if last else None


def _whole_word(text: str, end: int, value: Fraction) -> tuple[Fraction, int] | None:
    """None for a word that goes on: two-digit, tenfold."""
    return None if _GOES_ON.match(text, end) else (value, end)
