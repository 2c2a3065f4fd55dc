r"""Which boxes of a completion are its answer: one rule for several boxes, whatever stands between them.

A box counts unless it is empty or denied (“not \boxed{7}”, “\boxed{7} is wrong”, “\boxed{7}?”). The last one counts,
and with it those before it that belong to the same statement: two boxes are one answer unless the words between them
take the first back (“wait”, “no, …”) or make a new statement: another sentence, or a conclusion (“so the total is”).
A sentence that begins with or, another, alternatively, case … is none: it goes on with the answer. So \boxed{7} or
\boxed{8} leaves a choice, in every language and layout, as \boxed{7} or 8 does, and \boxed{1}, \boxed{2} is a list.
"""

import re
import unicodedata
from collections.abc import Callable

Box = tuple[int, int, str]
"""Where a box begins and ends, and what is in it."""
_AROUND = 60
"""Characters before and after a box in which it is denied."""
_NEW_STATEMENT = 8
"""Words from which on what stands between two boxes of one sentence is a statement of its own."""
_CONCLUSION = 3
"""Likewise, if it has a word that draws a conclusion."""
_FEW = 6
_LABEL = " \t.,;:!-–—0123456789/="
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|neither|nor|cannot|rather\s+than|instead\s+of)\b|n['’]t\b|\\neq?\b|≠|不是|不等于|并非)"
    r"(?:\s+(?:be|equal(?:\s+to)?|simply|just))?[\s$*_({\[]*(?:\\[(\[]\s*)?(?:[A-Za-z]\s*=\s*)?[\s{]*$",
    re.IGNORECASE,
)
_DENYING = ("not", "n't", "n’t", "Not", "NOT", "ever", "either", "nor", "ather", "nstead", "\\ne", "≠", "不", "并非")
"""What a denial has: looked for first, as it costs less."""
_DENIED_AFTER = re.compile(
    r"[\s$*_)\]}]*(?:\\[)\]][\s$*_]*)?(?:\?|？|[(,:–—-]?\s*(?:(?:which|that|it)\s+)?(?:"
    r"(?:(?:is|was|would\s+be|seems|looks)\s+(?:(?:clearly|obviously|also|certainly|definitely|just|simply)\s+)?"
    r"(?:wrong|incorrect|false|impossible|invalid|(?:a|my|our)\s+(?:mistake|error)\b)"
    r"|(?:is\s+not|isn['’]t|was\s+not|wasn['’]t|cannot\s+be|can['’]t\s+be)\s+(?:(?:the|our|my|a)\s+)?(?:(?:final|right|correct|real)\s+)?"
    r"(?:answer|solution|result|right|correct|valid|possible|true|it)\b)"
    r"|(?:wrong|incorrect)\b|是错|不对|错误))",
    re.IGNORECASE,
)
_PLAIN_VALUE = r"(-?\d[\d,]*(?:\.\d+)?(?:/\d+)?|(?-i:[A-J]))"
_OPENING, _CLOSING = r"[\s$*_({\[]*(?:\\[(\[]\s*)?", r"[\s$*_)\]}]*(?:\\[)\]][\s$*_]*)?"
_OR = r"(?:\bor\b|\boder\b|\bou\b|或者?)\s*(?:maybe|perhaps|possibly|even)?"
_ALTERNATIVE_BEFORE = re.compile(rf"(?<![\w.]){_PLAIN_VALUE}{_CLOSING}[,;(]?\s*{_OR}{_OPENING}$", re.IGNORECASE)
_ALTERNATIVE_AFTER = re.compile(
    rf"{_CLOSING}[,;(]?\s*{_OR}{_OPENING}{_PLAIN_VALUE}(?={_CLOSING}(?:[.,;!?)。]|\n|$))", re.IGNORECASE
)
"""A value outside a box that is an alternative to the box."""
_LAYOUT = re.compile(
    r"\\(?:text|mathrm|textbf|textit|mbox)\s*\{|<[a-z/ ]{1,6}>|\\[a-zA-Z]+|\\.|[$*_`{}|&#>~()\[\]\"“”]"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_BREAK = re.compile(r"[.!?。！？]\s|\n")
_TAKEN_BACK = re.compile(
    r"\b(?:wait|correction|sorry|oops|mistake|mistaken|wrong|incorrect|error|scratch\s+that|i\s+mean|no,|not\s+right)(?!\w)|不对|错了|更正",
    re.IGNORECASE,
)
_REPLACED = re.compile(
    r"\b(?:then|actually|instead|should\s+(?:be|have\s+been)|rather|(?:right|correct|actual|true|real)\s+(?:answer|value|result))\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"(?:and\s*/?\s*)?(?:or|alternatively|alternately|another|either|else|otherwise|possibly|perhaps|maybe|likewise|equally|ditto|"
    r"as\s+well\s+as|(?:in\s+)?(?:the\s+)?(?:\w+\s+)?(?:case|option|scenario|possibility|choice)|或|或者|另外|oder|ou)\b|或|另",
    re.IGNORECASE,
)
_GOES_ON_SHORTLY = re.compile(
    r"\b(?:and|also|other|second|too|as\s+well|additionally|valid|possible|possibly|possibility|if|unless|depending)\b|也|还",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"\b(?:so|thus|hence|therefore|then|giving|gives?|yields?|implies|implying|means|meaning|get|obtain|makes?|making|leaves?|leaving|"
    r"becomes|final)\b|所以|因此|故",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:if|unless|or|case|depending|maybe|perhaps|possibly|alternatively|otherwise|either)\b", re.IGNORECASE
)
_AND = re.compile(r"\band\b(?!\s*/)|&|和|与|以及|\\wedge|\\land|∧", re.IGNORECASE)
_COMMAS = re.compile(r"[\s$]*[,;，、；][\s$]*")


def add_box(boxes: list[Box], box: Box) -> None:
    """Add a box that has been closed in place of those inside it."""
    while boxes and boxes[-1][0] >= box[0]:
        boxes.pop()
    boxes.append(box)


def answer_of_boxes(text: str, boxes: list[Box]) -> tuple[str, int] | None:
    """The content of the last box that counts, with those that are one answer with it, and where it ends."""
    kept = [box for box in boxes if box[2].strip() and not _is_denied(text, box)]
    if not kept:
        return None
    parts, words = [kept[-1][2]], list[str]()
    for before, after in zip(kept[-2::-1], kept[:0:-1], strict=True):
        between = text[before[1] : after[0]]
        if not are_one_answer(between):
            break
        words.append(_joining(between))
        parts.append(before[2])
    first, last = kept[len(kept) - len(parts)], kept[-1]
    if before := _alternative(_ALTERNATIVE_BEFORE.search, text[max(0, first[0] - _AROUND) : first[0]]):
        parts.append(before)
        words.append("or")
    if after := _alternative(_ALTERNATIVE_AFTER.match, text[last[1] : last[1] + _AROUND]):
        parts.insert(0, after)
        words.insert(0, "or")
    if len({part.strip() for part in parts}) == 1:
        return last[2], last[1]
    if "and" in words:
        words = ["," if word == "or" else word for word in words]
    joined = [parts[-1]]
    for word, part in zip(reversed(words), reversed(parts[:-1]), strict=True):
        joined += (word, part)
    return " ".join(joined), last[1]


def are_one_answer(between: str) -> bool:
    """Whether two boxes with this text between them are one answer."""
    plain = _plain(between)
    words = len(_WORD.findall(plain))
    if not words:
        return True
    if _TAKEN_BACK.search(plain):
        return False
    sentences = [sentence.lstrip(_LABEL) for sentence in _BREAK.split(plain) if _WORD.search(sentence)]
    last = sentences[-1]
    if any(map(_GOES_ON.match, sentences if words <= _FEW else [last])):
        return True
    if _REPLACED.search(plain):
        return False
    concludes = _CONCLUDES.search(last) is not None
    if _BREAK.search(plain, 0, plain.rfind(last)):
        return words <= _FEW and not concludes and _GOES_ON_SHORTLY.search(last) is not None
    return _CONDITION.search(plain) is not None or words < (_CONCLUSION if concludes else _NEW_STATEMENT)


def _alternative(find: Callable[[str], re.Match[str] | None], beside: str) -> str | None:
    """The value beside a box that `or` joins to it."""
    found = find(beside) if any(word in beside.lower() for word in ("or", "ou", "oder", "或")) else None
    return None if found is None else found.group(1)


def _is_denied(text: str, box: Box) -> bool:
    before, after = text[max(0, box[0] - _AROUND) : box[0]], text[box[1] : box[1] + _AROUND]
    if any(word in before for word in _DENYING) and _DENIED_BEFORE.search(before):
        return True
    return _DENIED_AFTER.match(after) is not None


def _plain(text: str) -> str:
    """The text without layout and without what cannot be seen."""
    seen = text if text.isascii() else "".join(c for c in text if c == "\n" or unicodedata.category(c)[0] != "C")
    return _LAYOUT.sub(" ", seen)


def _joining(between: str) -> str:
    if _AND.search(between):
        return "and"
    return "," if _COMMAS.fullmatch(between) else "or"
