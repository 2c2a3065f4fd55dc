"""Words around a value: those that say nothing, those that make it another value, and units."""

from papo.verifiers.syntax import Node, Op, Unreadable, number, words
from papo.verifiers.units import amount

_LONGEST_UNIT = 5
NEUTRAL_WORDS = words(
    "the a an answer is are final value values total result so therefore thus about approximately roughly exactly"
    " equals equal to of it be solution solutions 答案 答案是 结果 结果是 结果为 为 是 所以 因此 约 大约 共 一共 总共"
)
"""Words that may stand before an answer without changing it."""
_FORBIDDEN = words(
    "not more less than least most if when where for mod unless except either neither nor minus plus times divided"
    " half other others between from until with without only modulo remainder r negative positive some many few or and"
    " is are was wrong incorrect maybe possibly perhaps no never but hopefully guess unknown below above under over"
    " short shy before after past off"
)
"""Words that are no unit: behind a number they change what it says."""
_COMPARING = words("as many much large big long great high tall fast far old heavy likely wide deep more often")
"""Words behind `times`: 7 times as many."""
_NUMBERS = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
)
"""Words that go on with a number where they end it: 5 point five. Five two-digit numbers are none of these."""
_CHANGING = words(
    "halves thirds fourths fifths sixths sevenths eighths ninths tenths elevenths twelfths hundredths thousandths"
    " millionths squared cubed factorial doubled tripled halved score"
)
"""Words that make another value of the number right before them."""


def measured(value: Node, behind: list[str]) -> Node:
    """A value with the words behind it. Raises Unreadable where they are more than an amount and a unit."""
    low = [word.lower() for word in behind]
    if low in (["percent"], ["per", "cent"], ["percentage"], ["pct"]):
        return Op("percent", (value,))
    while behind and (factor := amount(behind[0])) is not None:
        value = Op("mul", (value, number(factor)))
        behind, low = behind[1:], low[1:]
    if low and low[0] == "times" and set(low[1:]) <= _COMPARING:
        return value
    if low and low[0] == "of":
        behind, low = behind[1:], low[1:]
    changed = bool(low) and (low[0] in _CHANGING or low[-1] in _NUMBERS)
    if changed or len(low) > _LONGEST_UNIT or any(word in _FORBIDDEN for word in low):
        raise Unreadable(f"the words {' '.join(behind)!r} behind an expression")
    return Op(f"unit:{' '.join(behind)}", (value,)) if behind else value
