r"""The outcome reward for multiple choice: one committed letter, or the text of its option.

A reference is a letter ("B", "(B)"), a letter with its text ("B. Paris"), or JSON with all options:
`{"answer": "B", "options": {"A": "Rome", "B": "Paris"}}`, where options may also be a list, lettered from A.
"""

import json
import re
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast

from papo.rewards.answers import committed, last_answer_tag, normalize_answer
from papo.rewards.extraction import last_box
from papo.rewards.sentences import last_match
from papo.rewards.structured import (
    LONGEST_COMPLETION,
    Truncated,
    UnreadableError,
    cut_off,
    decided,
    missing,
    strict_json,
    unscorable,
)
from papo.rewards.verdict import Verdict
from papo.values import value

Place = Literal["boxed", "answer_tag", "stated"]
LONGEST_OPTION = 2000
_WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mathbb)\s*\{([^{}]*)\}")
_LETTER = re.compile(
    r"(?:(?:option|choice|answer)\s*[:：]?\s*)?(?:[(\[]\s*([A-Za-z])\s*[)\]]|([A-Za-z]))", re.IGNORECASE
)
_LETTERED = re.compile(r"(?:[(\[]\s*([A-Za-z])\s*[)\]][.:：]?|([A-Za-z])\s*[.):：])\s*(\S.*)", re.DOTALL)
_STATED = re.compile(
    r"(?:\b(?:answer|option|choice)\s*(?:\bis\b|[:：=])|(?:答案|选项)\s?(?:应该?)?\s?(?:是|为|选|[:：=]))\s*[:：]?"
    r"\s*(?:\b(?:option|choice)\s+)?",
    re.IGNORECASE,
)
_STATED_LETTER = re.compile(r"(?:[(\[]\s*([A-Z])\s*[)\]]|([A-Z])(?![\w'’-]))")
_ANOTHER = re.compile(
    r"\s*(?:,|/|&|\bor\b|\band\b|或|和)\s*(?:or\s+|and\s+)?[(\[]?[A-Z](?![\w'’])"
    r"|(?:[\s,;/|&+、，；(\[*_$\\{}…—–-]|\.(?=\.)|(?<=\.)\.(?!\.)|(?<!\.)\.(?=\s*(?i:or|and)\b)|或者?|和"
    r"|\b(?i:or|and|also|but|maybe|perhaps|possibly|probably|else|otherwise|unless|either|vs\.?|versus|text|lor|vee)\b)+"
    r"[A-Z](?![\w'’])(?!\s+[a-z])"
)
"""Behind a letter: a second one, with nothing between them but signs and words that join or doubt."""
_FURTHER = re.compile(r"[(\[]\s*[A-Z]\s*[)\]]|\b[A-Z]\s*[.):]|^,\s*(?:or|and|is)\b|^,\s*[A-Z]$")
"""Signs that a text after a letter goes on about letters."""
_WORD_FOLLOWS = re.compile(r"\s+[a-z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    letter: str
    options: dict[str, str] = field(default_factory=dict[str, str])


@value
class MultipleChoice:
    r"""1 if the committed option is the reference's, else 0; the same for evaluation.

    Two letters in one place are no commitment, and a letter that stands with another option's text is wrong. A letter
    that is stated after the box or tag replaces it.
    """

    kind: Literal["multiple_choice"] = "multiple_choice"
    extract: tuple[Place, ...] = ("boxed", "answer_tag", "stated")
    r"""Where the answer stands, in order of preference: the last `\boxed{…}`, the last `<answer>…</answer>`, the last
    “the answer is (B)”, “Answer: B”, “答案是B”."""
    truncated: Truncated = "zero"
    """Completions cut off at the token limit earn 0, or are scored like any other."""

    def __post_init__(self) -> None:
        if not self.extract:
            raise ValueError("extract is empty: name at least one of boxed, answer_tag, stated.")

    @property
    def version(self) -> str:
        """Declared version of the rule with all settings: part of the record and of the stage's key."""
        return f"multiple_choice/2 {json.dumps(asdict(self), sort_keys=True)}"

    def __call__(self, completion: str, *, reference_answer: str, finish_reason: str) -> Verdict:
        """Judge one completion. Raises on no text whatever."""
        try:
            gold = _reference(reference_answer)
        except UnreadableError as error:
            return unscorable(f"the reference {reference_answer[:80]!r} names no option: {error}")
        found = self._extract(committed(completion[-LONGEST_COMPLETION:]))
        if finish_reason == "length" and self.truncated == "zero":
            return cut_off(found)
        if found is None:
            return missing(self.extract)
        letter = _letter_of(found, gold)
        reason = None if letter else "it is neither one letter nor the text of one option"
        return decided(letter == gold.letter, extracted=found, reason=reason)

    def check_reference(self, reference_answer: str) -> str | None:
        """Why nothing can be verified against this reference, or None."""
        try:
            gold = _reference(reference_answer)
        except UnreadableError as error:
            return str(error)
        answers = [gold.letter, *([gold.options[gold.letter]] if gold.letter in gold.options else [])]
        same = all(_letter_of(answer, gold) == gold.letter for answer in answers)
        return None if same else "another option has the same text"

    def _extract(self, text: str) -> str | None:
        for place in self.extract:
            if place == "stated":
                found = _stated(text)
            elif place == "boxed":
                box = last_box(text)
                later = _stated(text[box[1] :]) if box and "stated" in self.extract else None
                found = later if later and len(later) == 1 else box and box[0]
            else:
                found = last_answer_tag(text)
                found = found if found is None else _within(found)
            if found is not None and found.strip():
                return found.strip()
        return None


def _within(tag: str) -> str:
    """A tag's content; the box or the statement in it, where it has one."""
    box = last_box(tag)
    return box[0] if box else _stated(tag) or tag


def _stated(text: str) -> str | None:
    """The letter that is stated last, or what else is stated, up to the line's end."""
    last = last_match(_STATED, text)
    if last is None:
        return None
    rest = text[last.end() : last.end() + LONGEST_OPTION].partition("\n")[0].lstrip("*_` \"'“‘$")
    letter = _STATED_LETTER.match(rest)
    if letter is None or (letter.group(2) in ("A", "I") and _WORD_FOLLOWS.match(rest, letter.end())):
        return rest.strip().rstrip("*_`.\"'”’$ ") or None
    if _ANOTHER.match(rest, letter.end()):
        return rest.strip()
    return str(letter.group(1) or letter.group(2))


def _bare(text: str) -> str:
    stripped = text[: LONGEST_OPTION + 1].strip()
    previous = None
    while stripped != previous:
        previous = stripped
        stripped = _WRAPPED.sub(r"\1", stripped).strip().strip("*_`$\"'“”").strip().removesuffix(".")
    return stripped


def _letter_of(answer: str, gold: _Reference) -> str | None:
    """The option that a text names as a whole; None if it names none, or two."""
    bare = _bare(answer)
    if len(bare) > LONGEST_OPTION:
        return None
    if match := _LETTER.fullmatch(bare):
        letter = str(match.group(1) or match.group(2)).upper()
        same_text = [name for name, option in gold.options.items() if _same(option, bare)]
        # An option whose text is a letter of its own ("the variable b") is not told from the letter: both must agree.
        return letter if not same_text or same_text == [letter] else None
    if match := _LETTERED.fullmatch(bare):
        letter = str(match.group(1) or match.group(2)).upper()
        option = gold.options.get(letter)
        if option is not None:
            return letter if _same(option, match.group(3)) else None
        if not gold.options:
            return letter if not _FURTHER.search(f", {match.group(3)}") else None
    same = [name for name, option in gold.options.items() if _same(option, bare)]
    return same[0] if len(same) == 1 else None


def _same(option: str, answer: str) -> bool:
    return normalize_answer(_bare(option)).casefold() == normalize_answer(_bare(answer)).casefold()


def _reference(text: str) -> _Reference:
    """Raises UnreadableError."""
    bare = _bare(text)
    if text.lstrip().startswith("{"):
        return _from_json(strict_json(text))
    if match := _LETTER.fullmatch(bare):
        return _Reference(letter=str(match.group(1) or match.group(2)).upper())
    if match := _LETTERED.fullmatch(bare):
        letter = str(match.group(1) or match.group(2)).upper()
        return _Reference(letter=letter, options={letter: match.group(3)})
    raise UnreadableError("use a letter, a letter with its text, or JSON of answer and options")


def _from_json(value: Any) -> _Reference:
    held = cast("dict[str, Any]", value)
    letter, options = held.get("answer"), held.get("options")
    if isinstance(options, list):
        listed = cast("list[Any]", options)
        options = {chr(ord("A") + index): option for index, option in enumerate(listed[:26])}
    if not isinstance(letter, str) or not isinstance(options, dict):
        raise UnreadableError("JSON of a choice has answer (a letter) and options (a list, or an object by letter)")
    named = {str(name).strip().upper(): str(option) for name, option in cast("dict[Any, Any]", options).items()}
    if letter.strip().upper() not in named:
        raise UnreadableError("its answer is none of its options")
    return _Reference(letter=letter.strip().upper(), options=named)
