"""Finding the answer a completion commits to, and the written rule by which two answers are the same.

The rule (gold answers and completions go through the same one):

1.  Full-width forms become ASCII, every minus sign and dash becomes "-" and the fraction slash "/". Superscripts stay
    what they are: 10² is not 102.
2.  Outer white space, `$ … $`, `\\( … \\)`, `\\[ … \\]`, a whole-answer `\\boxed{…}`, `\\text{…}` or `\\mathrm{…}`, and
    a final full stop go; so do LaTeX spacing (`\\,` `\\;` `\\!` `~`), `\\left`, `\\right` and a leading currency sign.
3.  `\\frac{a}{b}`, `\\dfrac`, `\\tfrac` and `\\frac ab` become a/b; `{,}` becomes a comma.
4.  A number is [sign] digits [. digits], digits grouped in threes by commas or spaces included, or a quotient of two
    whole or decimal numbers. It stands for its exact value: 7.0 is 7, 1,000 is 1000, 0.75 is 3/4, 0.333 is not 1/3.
5.  What is no number is compared as text, with runs of white space as one blank; case counts.
"""

import re
from fractions import Fraction

from papo.rewards.boxes import Box, add_box, answer_of_boxes
from papo.steps import ANSWER_CLOSE, ANSWER_OPEN, THINK_CLOSE, THINK_OPEN

LONGEST_ANSWER = 2000
"""Characters; what is longer is compared as it stands, so that no completion can make the check slow."""
LONGEST_NUMBER = 200
"""Characters; what is longer is no number."""

_PLAIN_FORMS = str.maketrans(
    {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    | dict.fromkeys(map(ord, "\u2212\u2010\u2011\u2012\u2013\u2014\ufe63\uff0d"), "-")
    | {ord("\u2044"): "/"}
)
_BRACES = re.compile(r"(\\?\\boxed\s*\{)|\\.|[{}]", re.DOTALL)
_NOISE = re.compile(r"\\[,;:!> ]|~|\\left(?![a-z])|\\right(?![a-z])")
_SPACES = ("\\ ", "~", "\\,", "\\;", "\\:")
_FRACTION = re.compile(r"(-?)\s*\\[dt]?frac\s*(?:\{([^{}]*)\}|(\d))\s*(?:\{([^{}]*)\}|(\d))")
_WRAPPERS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (r"\$\$?([^$]*)\$\$?", r"\\\((.*)\\\)", r"\\\[(.*)\\\]", r"\\(?:boxed|text|mathrm)\s*\{([^{}]*)\}")
)
_PLAIN = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)"
_GROUPED = r"[+-]?\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?:\.\d*)?"
_NUMBER = re.compile(rf"({_GROUPED}|{_PLAIN})(?:\s*/\s*({_GROUPED}|{_PLAIN}))?")


def committed(completion: str) -> str:
    """The part of a completion that is not reasoning: what follows the last `</think>`, up to a `<think>` after it.

    A box inside the reasoning is a thought, not an answer; all of it where there are no think tags.
    """
    return completion.rpartition(THINK_CLOSE)[2].partition(THINK_OPEN)[0]


def last_boxed(completion: str) -> str | None:
    r"""Content of the last `\boxed{…}` whose braces match; None without one.

    A box that was cut off is no answer, and the complete one before it counts. A box inside a box is part of the
    outer one. Braces that are escaped (`\{`) do not count. Boxes of one statement are one answer.
    """
    found: list[Box] = []
    opened: list[tuple[int, int] | None] = []
    for match in _BRACES.finditer(completion):
        if match.group(1) or match.group() == "{":
            opened.append(match.span() if match.group(1) else None)
        elif match.group() == "}" and opened:
            start = opened.pop()
            if start is not None:
                add_box(found, (start[0], match.end(), completion[start[1] : match.start()]))
    last = answer_of_boxes(completion, found)
    return None if last is None else last[0]


def last_answer_tag(completion: str) -> str | None:
    """Content of the last complete `<answer>…</answer>`; None without one."""
    closed = completion.rfind(ANSWER_CLOSE)
    opened = completion.rfind(ANSWER_OPEN, 0, max(closed, 0))
    return None if closed < 0 or opened < 0 else completion[opened + len(ANSWER_OPEN) : closed]


def normalize_answer(answer: str) -> str:
    """The canonical text of an answer by the rule above: equal answers have equal texts."""
    text = _clean(answer)
    number = _number(text)
    return str(number) if number is not None else text


def parse_number(answer: str) -> Fraction | None:
    """The exact value of an answer that is a number by the rule above, else None."""
    return _number(_clean(answer))


def _clean(answer: str) -> str:
    if len(answer) > LONGEST_ANSWER:
        return answer
    text = answer.translate(_PLAIN_FORMS)
    text = _NOISE.sub(lambda match: " " if match.group() in _SPACES else "", text.replace("{,}", ","))
    previous = None
    while text != previous:
        previous = text
        text = text.strip().removesuffix(".").rstrip()
        for wrapper in _WRAPPERS:
            if match := wrapper.fullmatch(text):
                text = match.group(1)
        text = _FRACTION.sub(_plain_fraction, text)
    text = re.sub(r"^([+-]?)\s*(?:\\?\$|€|£)\s*(?=[\d.+-])", r"\1", text)
    return re.sub(r"^([+-])\s+(?=[\d.])", r"\1", re.sub(r"\s+", " ", text)).strip()


def _plain_fraction(match: re.Match[str]) -> str:
    sign, numerator, short_numerator, denominator, short_denominator = match.groups()
    top = (numerator if numerator is not None else short_numerator).strip()
    bottom = (denominator if denominator is not None else short_denominator).strip()
    if sign and top.startswith("-"):
        sign, top = "", top[1:]
    return f"{sign}{top}/{bottom}"


def _number(text: str) -> Fraction | None:
    match = _NUMBER.fullmatch(text) if len(text) <= LONGEST_NUMBER else None
    if match is None or not text.isascii():
        return None
    top, bottom = (Fraction(re.sub(r"[, ]", "", part)) if part else Fraction(1) for part in match.groups())
    return None if bottom == 0 else top / bottom
