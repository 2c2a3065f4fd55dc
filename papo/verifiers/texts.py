"""Texts that stand for a value or a set: numbers in words, infinity, no solution, all real numbers."""

import re
from fractions import Fraction

from papo.verifiers.regions import INFINITY, MINUS_INFINITY, REALS
from papo.verifiers.spelled import spelled_number
from papo.verifiers.syntax import Node, Num, Op, Sym

EMPTY = Op("set", ())
PLACES: dict[Node, Node] = {Sym("reals"): REALS, Sym("emptyset"): EMPTY}
_MISSING = Op("text:does not exist", ())
_PHRASES: dict[Node, tuple[str, ...]] = {
    REALS: ("all real numbers", "all reals", "real numbers", "the real numbers", "all real values", "全体实数", "实数"),
    EMPTY: (
        "empty set", "the empty set", "no solution", "no solutions", "no real solution", "no real solutions",
        "there is no solution", "there are no solutions", "has no solution", "空集", "无解",
    ),
    INFINITY: ("infinity", "positive infinity", "无穷大", "无穷"),
    MINUS_INFINITY: ("negative infinity", "minus infinity"),
    _MISSING: ("dne", "does not exist", "doesn't exist", "it does not exist", "不存在"),
}  # fmt: skip
_VALUES = {phrase: value for value, phrases in _PHRASES.items() for phrase in phrases} | {
    word: Num(Fraction(value))
    for value, word in enumerate("零 一 二 三 四 五 六 七 八 九 十".split())  # noqa: SIM905 a list of ten words reads worse
}
_ALL_BUT = re.compile(
    r"(?:all |any |every |the )?(?:set of )?(?:real numbers?|reals?)(?: x)?"
    r" (?:except|excluding|but|other than|apart from)(?: for)?"
)


def value_of_text(tree: Op) -> Node:
    """What a text stands for; the text itself where that is nothing known."""
    words = tree.parameter.strip()
    low = words.lower()
    if (number := spelled_number(low)) is not None and number[1] == len(low):
        return Num(number[0])
    return _VALUES.get(low, Op(f"text:{words}", ()))


def is_all_but(words: str) -> bool:
    """Whether words say that all real numbers but the ones behind them are meant."""
    return _ALL_BUT.fullmatch(words) is not None


def all_but(excepted: Node) -> Op:
    """All real numbers but these, as a difference of sets."""
    joined = isinstance(excepted, Op) and excepted.head in ("list", "and", "set")
    items = excepted.args if joined and isinstance(excepted, Op) else (excepted,)
    values = (item.args[1] if isinstance(item, Op) and item.head == "rel:=" else item for item in items)
    return Op("minus", (Sym("reals"), Op("set", tuple(values))))
