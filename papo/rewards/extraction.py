r"""Which text of a completion is its answer: one rule for training and evaluation, in a declared order of places.

-   boxed: the last complete `\boxed{…}` that is not denied, outermost braces (`\fbox`, `\boxed 7` too).
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
from functools import lru_cache
from typing import Literal

from papo.rewards.answers import committed, last_answer_tag
from papo.rewards.boxes import Box, add_box, answer_of_boxes
from papo.rewards.sentences import CUT_OFF, closing, is_prose, last_match, statement

Place = Literal["boxed", "answer_tag", "hashes", "stated", "closing"]
PLACES: tuple[Place, ...] = ("boxed", "answer_tag", "hashes", "stated", "closing")
_BOXES = re.compile(r"(\\(?:boxed|fbox)\s*(?:\{|(?=[\w\\.-])))|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"(-?\d[\d,]*(?:\.\d+)?|-?\\[a-zA-Z]+(?:\s*\{[^{}]*\}){0,2}|[A-Za-z])")
_STATED = re.compile(
    r"(?:^[#*\s]*(?:final\s+)?answer[*:：\s]*\n+|\b(?:final\s+)?(?:answer|result|solution)\b(?:\s+(?:to|of|for)\b[^.:\n=]{0,80}?)?\s*(?:is|are|equals|=|:|：|would\s+be|"
    r"should\s+be|must\s+be|comes\s+out\s+to(?:\s+be)?)\s*(?:that\s+)?(?:equal\s+to\s+)?:?|"
    r"(?:最终)?(?:答案|结果)(?:应该|应)?\s*(?:是|为|等于|[:：=])|答\s*[:：]|选(?:择)?\s*[:：]?(?=\s*[（(]?[A-J]\b))\s*[:：]?\s*",
    re.IGNORECASE | re.MULTILINE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:wait|actually|correction|sorry|oops|mistake|instead|wrong|incorrect|scratch\s+that|i\s+mean|rather|no,)|不对|错了|更正",
    re.IGNORECASE,
)
_BUT = re.compile(r"\b(?:but|however|though)\b|但", re.IGNORECASE)
"""Words that take a box back if an answer is stated after them."""
_CORRECTED = re.compile(
    r"\b(?:it|that|this|which|x|answer)\s+(?:is|should\s+be|must\s+be|equals)\s+(?:actually\s+)?", re.IGNORECASE
)


def extract(completion: str, places: Sequence[Place] = PLACES) -> str | None:
    """The answer that a completion commits to, as it is written; None if it commits to none."""
    text = committed(completion)
    for place in places:
        found = _PLACES[place](text)
        if found is not None:
            taken_back = "stated" in places and place == "boxed"
            return (_correction(text) if taken_back else None) or found.strip() or None
    return None


@lru_cache(maxsize=1)
def last_box(text: str) -> tuple[str, int] | None:
    r"""The content of the last complete box that stands in no other, and where it ends.

    Boxes of one statement are one answer: \boxed{1} or \boxed{2} (`papo.rewards.boxes`).
    """
    found: list[Box] = []
    opened: list[tuple[int, int] | None] = []
    boxes = 0
    for match in _BOXES.finditer(text):
        token = match.group()
        if match.group(1) and token.endswith("{"):
            opened.append(match.span())
            boxes += 1
        elif match.group(1):
            bare = _BARE_BOX.match(text, match.end())
            if bare and not boxes:
                found.append((match.start(), bare.end(), bare.group(1)))
        elif token == "{":
            opened.append(None)
        elif token == "}" and opened:
            start = opened.pop()
            if start is not None:
                boxes -= 1
                add_box(found, (start[0], match.end(), text[start[1] : match.start()]))
    return answer_of_boxes(text, found)


def _boxed(text: str) -> str | None:
    found = last_box(text)
    return None if found is None else _inner(found[0])


def _inner(box: str) -> str:
    content = box.strip()
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
    """The rest of the last #### line; a heading of that rank (“#### Step 3:”) is none."""
    _, mark, rest = text.rpartition("####")
    found = rest.strip().partition("\n")[0].strip() if mark else ""
    return found if found and not found.endswith((":", "：")) and not is_prose(found) else None


def _stated(text: str) -> str | None:
    last = last_match(_STATED, text)
    found = None if last is None else statement(text, last.end())
    return None if found is None or CUT_OFF.search(found) else found


def _correction(text: str) -> str | None:
    """The statement after the last box, where words take the box back; None where nothing does."""
    found = last_box(text)
    if found is None:
        return None
    rest = text[found[1] :]
    taken, contrast = _TAKEN_BACK.search(rest), _BUT.search(rest)
    last = last_match(_STATED, rest, contrast.start()) if contrast else None
    if taken is not None:
        last = last_match(_STATED, rest, taken.start()) or last_match(_CORRECTED, rest, taken.start()) or last
    answer = None if last is None else statement(rest, last.end())
    return answer if answer and re.search(r"\d", answer) else None


_PLACES: dict[Place, Callable[[str], str | None]] = {
    "boxed": _boxed, "answer_tag": _answer_tag, "hashes": _hashes, "stated": _stated, "closing": closing,
}  # fmt: skip
