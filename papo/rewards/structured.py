"""What rewards for structured answers share: reading strict JSON out of a completion, and their verdicts."""

import json
import re
from collections.abc import Callable
from typing import Any, Literal

from papo.rewards.answers import last_answer_tag
from papo.rewards.extraction import last_box
from papo.rewards.verdict import Verdict

Truncated = Literal["zero", "score"]
Place = str
"""boxed, answer_tag, or the name of what a reward finds at the end of a text itself."""
LONGEST_COMPLETION = 2_000_000
"""Characters; of a longer completion only the end is looked at."""
_MARKS = re.compile(r'\\.|["{}]', re.DOTALL)


class UnreadableError(ValueError):
    """A text that is not what it should be; the message says why."""


def strict_json(text: str) -> Any:
    """The value of a JSON text whose numbers stay as they are spelled. Raises UnreadableError and nothing else.

    A key that stands twice in an object is refused: it would be two answers. So are NaN and the infinities.
    """
    try:
        return json.loads(
            text, parse_int=str, parse_float=str, parse_constant=_no_constant, object_pairs_hook=_each_once
        )
    except RecursionError:
        raise UnreadableError("it is nested too deeply") from None
    except ValueError as error:
        raise UnreadableError(f"it is no JSON ({str(error)[:120]})") from None


def find_answer(text: str, places: tuple[Place, ...], *, closing: Callable[[str], str | None]) -> str | None:
    r"""The answer in the first of `places` that has one that is not blank: the last `\boxed{…}`, the last
    `<answer>…</answer>` (there without the code fence that it may stand in), or what `closing` finds."""
    finders = {"boxed": _boxed, "answer_tag": _tagged}
    for place in places:
        found = finders.get(place, closing)(text)
        if found is not None and found.strip():
            return found.strip()
    return None


def _boxed(text: str) -> str | None:
    box = last_box(text)
    return None if box is None else fenced(box[0])


def _tagged(text: str) -> str | None:
    tag = last_answer_tag(text)
    return None if tag is None else fenced(tag)


def fenced(text: str) -> str:
    """What stands in the last code fence of a text; the text itself where there is none."""
    blocks = text.split("```")[1:-1:2]
    return blocks[-1].removeprefix("json").strip() if blocks else text.strip()


def last_object(text: str) -> str | None:
    """The last `{…}` whose braces match, those in JSON strings not counted; None without one. Linear in the length."""
    level, start, in_string = 0, 0, False
    found: str | None = None
    for match in _MARKS.finditer(text):
        token = match.group()
        if token == '"':
            in_string = level > 0 and not in_string
        elif in_string or token.startswith("\\"):
            continue
        elif token == "{":
            start = match.start() if level == 0 else start
            level += 1
        elif level > 0:
            level -= 1
            found = text[start : match.end()] if level == 0 else found
    return found


def plain(text: str) -> str:
    """A text for comparison: runs of white space are one blank, case does not count."""
    return " ".join(text.split()).casefold()


def decided(correct: bool, *, extracted: str, accuracy: float | None = None, reason: str | None = None) -> Verdict:
    """An answer was compared. `accuracy` None: 1 or 0."""
    earned = float(correct) if accuracy is None else accuracy
    return Verdict(accuracy=earned, correct=correct, status="ok", extracted=extracted, reason=reason)


def missing(places: tuple[str, ...]) -> Verdict:
    """There is no answer in any of the places."""
    reason = f"no complete {' or '.join(places)}"
    return Verdict(accuracy=0.0, correct=False, status="no_answer", reason=reason)


def cut_off(extracted: str | None) -> Verdict:
    """The completion ended at the token limit, which earns nothing."""
    reason = "cut off at the token limit"
    return Verdict(accuracy=0.0, correct=False, status="truncated", extracted=extracted, reason=reason)


def unscorable(reason: str) -> Verdict:
    """The reference cannot be read: unknown, never a free reward."""
    return Verdict(accuracy=None, correct=None, status="unscorable", reason=reason)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in it")
    return found
