"""The value that a sentence ends in, for completions that mark their answer by words alone."""

import re

LONGEST_SENTENCE = 600
_FEW_WORDS = 3
_PROSE = 4
"""Words outside formulas from which on a statement is a sentence and not a value."""
_COPULA = re.compile(
    r"(?:\b(?:is|are|was|be|equals?|gives?|get|gets|obtain|obtains|becomes|makes|has|have|needs?|costs?|totals?|leaves?|total\s+of|answer)\b"
    r"(?:\s+(?:exactly|simply|just|thus|therefore|equal\s+to|a\s+total\s+of|then))?(?:\s*\((?:is|are|s|es)\))?\s*:?|[=:：]|是|为|等于|得到|得|有|共)\s*",
    re.IGNORECASE,
)
_MATH_SPAN = re.compile(r"\$\$([^$]+)\$\$|\$([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_BOLD = re.compile(r"\*\*([^*\n]*\d[^*\n]*)\*\*")
_SENTENCE_END = re.compile(r"(?:(?<=[.?])|(?<=[A-Za-z]!))\s+(?=\S)|\n+|(?<=[。！？])")
_JOINED = re.compile(r"\s*(?:[,;，、]|[,;]?\s*(?:or|and|或|和))\s*")
_WORD = re.compile(r"[A-Za-z]{2,}")


_OPEN_ENDS = ("?", "？", ":", "：")
"""Of questions and headings, which state nothing."""
_NOT_BUT = re.compile(r"(?:not|neither)\s[^.]*?,?\s+but\s+(?:rather\s+)?", re.IGNORECASE)
"""Before what an answer is instead."""
CUT_OFF = re.compile(r"\\f?box(?:ed)?")


def statement(text: str, start: int) -> str | None:
    """What is stated from `start` on: the formula, or the sentence, or the value that the sentence ends in."""
    rest = text[start : start + LONGEST_SENTENCE].lstrip("*_ \t\n")
    if instead := _NOT_BUT.match(rest):
        rest = rest[instead.end() :]
    if span := _MATH_SPAN.match(rest):
        after = rest[span.end() :]
        if not re.match(r"\s*(?:\\?%|\\?text|[-+*/^=,]|\b(?:and|or)\b|[A-Za-z(])", after):
            return _content(span)
    sentence = _SENTENCE_END.split(rest, maxsplit=1)[0]
    found = _trimmed(sentence)
    if is_prose(found):
        return closing(sentence) or found
    return found or None


def is_prose(text: str) -> bool:
    """Whether a text has so many words outside formulas that it is a sentence."""
    return len(_WORD.findall(_without_names(text))) >= _PROSE


def closing(text: str) -> str | None:
    """The value that the last sentence ends in, or a short text as a whole."""
    tail = text.rstrip()[-LONGEST_SENTENCE:]
    sentences = [part for part in _SENTENCE_END.split(tail) if part and part.strip(" *_.$#")]
    if not sentences or CUT_OFF.search(sentences[-1]) or sentences[-1].rstrip(" *_$").endswith(_OPEN_ENDS):
        return None
    if bold := _BOLD.findall(sentences[-1]):
        return bold[-1].strip()
    spans = list(_MATH_SPAN.finditer(tail))
    if spans and not tail[spans[-1].end() :].strip(" .。*\n"):
        return _last_formulas(tail, spans)
    sentence = _trimmed(sentences[-1])
    whole = len(sentences) == 1 and len(text.strip()) <= LONGEST_SENTENCE
    if whole and not _WORD.search(_without_names(sentence)):
        return sentence
    return _valued(sentence) or (sentence if whole and len(sentence.split()) <= _FEW_WORDS else None)


def _valued(sentence: str) -> str | None:
    """What stands behind the last `is` or =; the only formula with a number, where nothing does."""
    last = _copula(sentence)
    if last is not None and last.group().strip() in ("=", ":"):
        return _equation_around(sentence, last.start())
    value = None if last is None else sentence[last.end() :].strip()
    numbered = [span for span in _MATH_SPAN.finditer(sentence) if re.search(r"\d", span.group())]
    if len(numbered) == 1 and (value is None or (len(value.split()) > _PROSE and numbered[0].group() in value)):
        return _content(numbered[0])
    return value or None


def last_match(pattern: re.Pattern[str], text: str, start: int = 0) -> re.Match[str] | None:
    """The last of all matches."""
    found = None
    for match in pattern.finditer(text, start):
        found = match
    return found


def _copula(sentence: str) -> re.Match[str] | None:
    """The word or sign after which the value stands: the last one, or the first = or : of an equation."""
    last = None
    for found in _COPULA.finditer(sentence):
        last = found
        if found.group().strip() in ("=", ":") and sentence[: found.start()].strip():
            break
    return last


def _trimmed(sentence: str) -> str:
    return sentence.strip().strip("*").rstrip(".。!！").strip().strip("*").strip()


def _content(span: re.Match[str]) -> str:
    return next(group for group in span.groups() if group is not None).strip()


def _last_formulas(text: str, spans: list[re.Match[str]]) -> str:
    """The last formula, with those that a comma, `or` or `and` joins to it: all of them are the answer."""
    first = len(spans) - 1
    while first and _JOINED.fullmatch(text, spans[first - 1].end(), spans[first].start()):
        first -= 1
    return _content(spans[-1]) if first == len(spans) - 1 else text[spans[first].start() : spans[-1].end()]


def _equation_around(sentence: str, sign: int) -> str:
    """The equation that an = in running text stands in: back to the last word before it."""
    before = sentence[:sign]
    words = list(re.finditer(r"\b(?!sin|cos|tan|log|ln|exp|sqrt|pi\b)[A-Za-z]{2,}\b[:,]?\s*", before))
    return sentence[words[-1].end() if words else 0 :].strip()


def _without_names(sentence: str) -> str:
    """A formula without the words that are part of formulas."""
    bare = re.sub(r"\\[a-zA-Z]+|\\?text\s*\{[^{}]*\}|\$", " ", sentence)
    return re.sub(r"\b(?:sin|cos|tan|log|ln|exp|sqrt|pi|or|and|percent|degrees?)\b", " ", bare)
