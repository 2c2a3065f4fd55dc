r"""Which text of a completion is its answer: one rule for training and evaluation, in a declared order of places.

-   boxed: the last complete `\boxed{…}`, outermost braces (`\fbox`, `\boxed 7` too).
-   answer_tag: the last complete `<answer>…</answer>`, and the box or the statement inside it.
-   hashes: what follows the last `####` up to the line's end.
-   stated: what follows the last “answer is”, “Answer:”, “答案：” …, up to the sentence's end.
-   closing: the value that the last sentence ends in (“… is 42.”, “so $x=3$”), or the whole text if it is a formula.

Reasoning never counts: only what follows the last `</think>`, and nothing of a think block that has no end. A later
answer replaces an earlier one of the same place; after a box that is taken back in words (“Wait, … the answer is 9”)
the statement counts. Everything is linear in the text's length.
"""

import re
from collections.abc import Callable, Sequence
from typing import Literal

from papo.rewards.answers import committed, last_answer_tag

Place = Literal["boxed", "answer_tag", "hashes", "stated", "closing"]
PLACES: tuple[Place, ...] = ("boxed", "answer_tag", "hashes", "stated", "closing")
LONGEST_SENTENCE = 600
_FEW_WORDS = 3
_BOXES = re.compile(r"(\\(?:boxed|fbox)\s*(?:\{|(?=[\w\\.-])))|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"(-?\d[\d,]*(?:\.\d+)?|-?\\[a-zA-Z]+(?:\s*\{[^{}]*\}){0,2}|[A-Za-z])")
_STATED = re.compile(
    r"(?:^[#*\s]*(?:final\s+)?answer[*:：\s]*\n+|\b(?:final\s+)?(?:answer|result|solution)\b(?:\s+(?:to|of|for)\b[^.:\n=]{0,80}?)?\s*(?:is|are|equals|=|:|：|would\s+be|"
    r"should\s+be|must\s+be|comes\s+out\s+to(?:\s+be)?)\s*(?:that\s+)?(?:equal\s+to\s+)?:?|"
    r"(?:最终)?(?:答案|结果)(?:应该|应)?\s*(?:是|为|等于|[:：=]))\s*[:：]?\s*",
    re.IGNORECASE | re.MULTILINE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:wait|actually|correction|sorry|oops|mistake|instead|wrong|incorrect|scratch\s+that|i\s+mean|rather|no,)|不对|错了|更正",
    re.IGNORECASE,
)
_CORRECTED = re.compile(
    r"\b(?:it|that|this|which|x|answer)\s+(?:is|should\s+be|must\s+be|equals)\s+(?:actually\s+)?", re.IGNORECASE
)
_COPULA = re.compile(
    r"(?:\b(?:is|are|was|be|equals?|gives?|get|gets|obtain|obtains|becomes|makes|has|have|needs?|costs?|totals?|leaves?|total\s+of|answer)\b"
    r"(?:\s+(?:exactly|simply|just|thus|therefore|equal\s+to|a\s+total\s+of|then))?\s*:?|[=:：]|是|为|等于|得到|得|有|共)\s*",
    re.IGNORECASE,
)
_MATH_SPAN = re.compile(r"\$\$([^$]+)\$\$|\$([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_SENTENCE_END = re.compile(r"(?:(?<=[.?])|(?<=[A-Za-z]!))\s+(?=\S)|\n+|(?<=[。！？])")
_JOINED = re.compile(r"\s*(?:[,;，、]|[,;]?\s*(?:or|and|或|和))\s*")
_WORD = re.compile(r"[A-Za-z]{2,}")


def extract(completion: str, places: Sequence[Place] = PLACES) -> str | None:
    """The answer that a completion commits to, as it is written; None if it commits to none."""
    text = committed(completion)
    for place in places:
        found = _PLACES[place](text)
        if found is not None:
            taken_back = "stated" in places and place == "boxed"
            return (_correction(text) if taken_back else None) or found.strip() or None
    return None


def last_box(text: str) -> tuple[str, int] | None:
    """The content of the last complete box that stands in no other, and where it ends."""
    found: tuple[str, int] | None = None
    opened: list[int | None] = []
    boxes = 0
    for match in _BOXES.finditer(text):
        token = match.group()
        if match.group(1) and token.endswith("{"):
            opened.append(match.end())
            boxes += 1
        elif match.group(1):
            bare = _BARE_BOX.match(text, match.end())
            if bare and not boxes:
                found = bare.group(1), bare.end()
        elif token == "{":
            opened.append(None)
        elif token == "}" and opened:
            start = opened.pop()
            if start is not None:
                boxes -= 1
                found = text[start : match.start()], match.end()
    return found


def _boxed(text: str) -> str | None:
    found = last_box(text)
    if found is None:
        return None
    content = found[0].strip()
    while (inner := re.fullmatch(r"\\(?:boxed|fbox)\s*\{(.*)\}", content, re.DOTALL)) and _is_balanced(inner.group(1)):
        content = inner.group(1).strip()
    return content


def _is_balanced(text: str) -> bool:
    level = 0
    for match in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        level += {"{": 1, "}": -1}.get(match.group(), 0)
        if level < 0:
            return False
    return level == 0


def _answer_tag(text: str) -> str | None:
    inner = last_answer_tag(text)
    if inner is None:
        return None
    for place in (_boxed, _hashes, _stated):
        if (found := place(inner)) is not None:
            return found
    return inner


def _hashes(text: str) -> str | None:
    _, mark, rest = text.rpartition("####")
    return (rest.strip().partition("\n")[0].strip() or None) if mark else None


def _stated(text: str) -> str | None:
    last = _last(_STATED, text)
    found = None if last is None else _sentence_from(text, last.end())
    return None if found is None or "boxed" in found else found


def _sentence_from(text: str, start: int) -> str | None:
    """What stands from `start` to the end of its sentence: the formula alone, where it is one."""
    rest = text[start : start + LONGEST_SENTENCE].lstrip("*_ \t\n")
    if span := _MATH_SPAN.match(rest):
        after = rest[span.end() :]
        if not re.match(r"\s*(?:\\?%|\\?text|[-+*/^=,]|\b(?:and|or)\b|[A-Za-z(])", after):
            return next(group for group in span.groups() if group is not None).strip()
    sentence = _SENTENCE_END.split(rest, maxsplit=1)[0]
    return sentence.strip().rstrip(".。!！*").strip() or None


def _closing(text: str) -> str | None:
    """The value that the last sentence ends in, or a short text as a whole."""
    tail = text.rstrip()[-LONGEST_SENTENCE:]
    sentences = [part for part in _SENTENCE_END.split(tail) if part and part.strip(" *_.$#")]
    if not sentences or "boxed" in sentences[-1] or sentences[-1].rstrip(" *_$").endswith(("?", "？")):
        return None
    sentence = sentences[-1].strip().rstrip(".。!！*").strip()
    if len(text.strip()) <= LONGEST_SENTENCE and len(sentences) == 1 and not _WORD.search(_without_names(sentence)):
        return sentence
    spans = list(_MATH_SPAN.finditer(sentence))
    if spans and not sentence[spans[-1].end() :].strip(" .。"):
        return _last_formulas(sentence, spans)
    last = _copula(sentence)
    if last is None:
        short = len(sentences) == 1 and len(text.strip()) <= LONGEST_SENTENCE and len(sentence.split()) <= _FEW_WORDS
        return sentence if short else None
    if last.group().strip() in ("=", ":"):
        return _equation_around(sentence, last.start())
    return sentence[last.end() :].strip() or None


def _copula(sentence: str) -> re.Match[str] | None:
    """The word or sign after which the value stands: the last one, or the first = or : of an equation."""
    last = None
    for found in _COPULA.finditer(sentence):
        last = found
        if found.group().strip() in ("=", ":") and sentence[: found.start()].strip():
            break
    return last


def _last(pattern: re.Pattern[str], text: str, start: int = 0) -> re.Match[str] | None:
    found = None
    for match in pattern.finditer(text, start):
        found = match
    return found


def _last_formulas(sentence: str, spans: list[re.Match[str]]) -> str:
    """The last formula, with those that a comma, `or` or `and` joins to it: all of them are the answer."""
    first = len(spans) - 1
    while first and _JOINED.fullmatch(sentence, spans[first - 1].end(), spans[first].start()):
        first -= 1
    if first == len(spans) - 1:
        return next(group for group in spans[-1].groups() if group is not None).strip()
    return sentence[spans[first].start() : spans[-1].end()]


def _equation_around(sentence: str, sign: int) -> str:
    """The equation that an = in running text stands in: back to the last word before it."""
    before = sentence[:sign]
    words = list(re.finditer(r"\b(?!sin|cos|tan|log|ln|exp|sqrt|pi\b)[A-Za-z]{2,}\b[:,]?\s*", before))
    return sentence[words[-1].end() if words else 0 :].strip()


def _without_names(sentence: str) -> str:
    """A formula without the words that are part of formulas."""
    bare = re.sub(r"\\[a-zA-Z]+|\\?text\s*\{[^{}]*\}|\$", " ", sentence)
    return re.sub(r"\b(?:sin|cos|tan|log|ln|exp|sqrt|pi|or|and|percent|degrees?)\b", " ", bare)


def _correction(text: str) -> str | None:
    """The statement after the last box, where words take the box back; None where nothing does."""
    found = last_box(text)
    if found is None:
        return None
    rest = text[found[1] :]
    taken = _TAKEN_BACK.search(rest)
    if taken is None:
        return None
    last = _last(_STATED, rest, taken.start()) or _last(_CORRECTED, rest, taken.start())
    answer = None if last is None else _sentence_from(rest, last.end())
    return answer if answer and re.search(r"\d", answer) else None


_PLACES: dict[Place, Callable[[str], str | None]] = {
    "boxed": _boxed, "answer_tag": _answer_tag, "hashes": _hashes, "stated": _stated, "closing": _closing,
}  # fmt: skip
