"""What an answer must be beyond full marks of a scorer that gives them for others too.

Found by giving every scorer of release 0.1.25 what no puzzle asks for (blanks, "0", "nan", the question's own words,
other problems' answers, gold answers with parts changed); docs/data.md has the table.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from papo.rewards.expressions import evaluate

Entry = dict[str, Any]
_NO_NUMBER = re.compile(r"(?<![a-z])nan(?![a-hk-z])", re.IGNORECASE)
"""nan, and nani or nanj as imaginary ones: whatever is compared with it is not too far away."""
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_CLOSE = Fraction(1, 10_000)
"""How far a probability may be off, as in the library."""


def holds(task: str, answer: str, entry: Entry) -> bool:
    """Whether an answer that the scorer gave full marks is one to a problem of `task`. Raises on answers that cannot
    be read, which are none."""
    if _NO_NUMBER.search(answer) and not _NO_NUMBER.search(entry["answer"] or ""):
        return False
    rule = _RULES.get(task)
    return rule is None or rule(answer, entry)


def _makes(answer: str, entry: Entry, target: int) -> bool:
    """Of the numbers of this problem, each once, with + - * / alone: the scorer looks at how they are spelled."""
    found = evaluate(answer)
    return found.value == target and found.numbers == Counter(map(Fraction, entry["metadata"]["numbers"]))


def _countdown(answer: str, entry: Entry) -> bool:
    return _makes(answer, entry, entry["metadata"]["target"])


def _puzzle24(answer: str, entry: Entry) -> bool:
    return _makes(answer, entry, 24)


def _same_word(answer: str, entry: Entry) -> bool:
    """The scorer takes any text for True."""
    return answer.strip().casefold() == entry["answer"].strip().casefold()


def _probability(answer: str, entry: Entry) -> bool:
    """The scorer takes the beginning of the right number for all of it, so 0 and 0.0."""
    found, gold = (Fraction(text.replace(",", "").strip()) for text in (answer, entry["answer"]))
    return abs(found - gold) <= min(_CLOSE, gold / 100 if gold else _CLOSE)


def _one_number(answer: str, entry: Entry) -> bool:
    """The scorer takes the first number without its sign."""
    (found,) = _NUMBER.findall(answer)
    return Fraction(found.replace(",", "")) == Fraction(entry["answer"].replace(",", ""))


def _given_numbers(answer: str, entry: Entry) -> bool:
    """The scorer takes numbers that are off by up to 1."""
    found, gold = (ast.literal_eval(text.strip()) for text in (answer, entry["answer"]))
    return [Fraction(str(number)) for number in found] == [Fraction(str(number)) for number in gold]


def _given_variables(answer: str, entry: Entry) -> bool:
    """The scorer lets small letters through, and anything follows from premises that contradict each other."""
    return set(filter(str.isalpha, answer)) <= set(entry["metadata"]["variables"])


_RULES: dict[str, Callable[[str, Entry], bool]] = {
    "coin_flip": _probability,
    "countdown": _countdown,
    "game_of_life_halting": _same_word,
    "gsm_symbolic": _one_number,
    "number_sorting": _given_numbers,
    "propositional_logic": _given_variables,
    "puzzle24": _puzzle24,
}
