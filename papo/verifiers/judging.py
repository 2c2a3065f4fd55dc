"""One pair: is this answer the reference? The same code in the caller (form only) and in a worker (engines)."""

import re
from dataclasses import dataclass

from papo.verifiers.cleaning import clean, quantified
from papo.verifiers.equality import Comparison
from papo.verifiers.parsing import LONGEST
from papo.verifiers.reading import MOST_WORDS, read, read_renamed
from papo.verifiers.rules import Engine, Rules
from papo.verifiers.syntax import Node, Op, Unreadable, shown

LONGEST_CANONICAL = 500
_CHOICE = re.compile(
    r"(?:option|choice|answer|选项|选)?\s*\(?\s*([A-Ja-j])\s*(?:\)|[.:]|$)\s*(.*)", re.DOTALL | re.IGNORECASE
)
_ANOTHER_CHOICE = re.compile(
    r"(?<![A-Za-z\\])[A-J]\s*[):.]|\b(?:or|and|maybe|not)\b(?:\s+\w+){0,3}[\s,]+[A-J]\b|^\s*[-+*/=^]"
    r"|(?:^|[\s,;/|&])[A-J](?:[\s,;/|&]+[A-J])+$|^[\s(]*[A-J][\s)]*$"
)
"""What follows a letter goes on about letters: B. or C, (B) C, B: not this, C."""
_WORDS = re.compile(r"[A-Za-z\u3400-\u9fff' -]+")
_TEXT = re.compile(r"\\text\s*\{([^{}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    same: bool
    canonical: str | None
    """The answer as it was read; None where it could not be."""
    reason: str | None = None


def check_reference(reference: str) -> str | None:
    """Why nothing can be verified against this reference; None if it can."""
    if not reference.strip():
        return "the reference answer is blank"
    if _choice_of(reference):
        return None
    try:
        found = read(reference)
    except Unreadable as unreadable:
        return f"the reference answer cannot be read: {unreadable}"
    if isinstance(found, Op) and found.kind == "text" and _is_prose(found.parameter):
        return "the reference answer is prose, which no rule compares"
    if found == Op("several", ()):
        return "the reference answer is empty"
    return None


def decide(reference: str, answer: str, *, rules: Rules, engine: Engine) -> Decision:
    """Whether `answer` is `reference`, which `check_reference` has passed. Raises what the engine raises."""
    choice = _choice_of(reference)
    if choice is not None and (chosen := _chosen(answer)) is not None:
        return _decided(chosen == choice, chosen)
    gold = read(reference)
    try:
        found = read(answer)
    except Unreadable as unreadable:
        words = _words_of(reference)
        same = (words is not None and words == _words_of(answer)) or _second(reference, answer, engine)
        return Decision(same=same, canonical=None, reason=str(unreadable))
    if _is_text(gold) or _is_text(found):
        words = _words_of(reference)
        same = gold == found or (words is not None and words == _words_of(answer))
        return _decided(same, shown(found))
    ours, theirs = quantified(reference), quantified(answer)
    if ours is not None and theirs is not None:
        if set(filter(None, (ours[1], theirs[1]))) == {"integers", "naturals"} and not _is_named(gold):
            return _decided(False, shown(found))
        found = read_renamed(answer, theirs[0], ours[0])
    return _decided(Comparison(engine, rules).same(gold, found), shown(found))


def _second(reference: str, answer: str, engine: Engine) -> bool:
    """What another reader says of an answer that this one cannot read; hardly anything gets so far."""
    return len(answer) <= LONGEST and "\\" in answer and engine.second_opinion(reference, answer)


def _decided(same: bool, canonical: str | None) -> Decision:
    return Decision(same=same, canonical=None if canonical is None else canonical[:LONGEST_CANONICAL])


def _is_text(node: Node) -> bool:
    return isinstance(node, Op) and node.kind == "text"


def _is_named(node: Node) -> bool:
    return isinstance(node, Op) and node.kind == "assign"


def _is_prose(words: str) -> bool:
    return len(words.split()) > MOST_WORDS or len(words) > 60


def _words_of(text: str) -> str | None:
    """The words of an answer that is nothing but words, in one case; None for anything else, a letter included."""
    if len(text) > LONGEST:
        return None
    plain = _TEXT.sub(r"\1", clean(text)).strip(" .,:;!()")
    wordy = _WORDS.fullmatch(plain) is not None and len(plain) > 1
    return " ".join(plain.casefold().split()) if wordy else None


def _choice_of(reference: str) -> str | None:
    if len(reference) > 40 or not any(letter in reference for letter in "ABCDEFGHIJ"):
        return None
    plain = _TEXT.sub(r"\1", clean(reference)).strip()
    found = re.fullmatch(r"\(?([A-J])\)?\.?", plain)
    return found.group(1) if found else None


def _chosen(answer: str) -> str | None:
    """The letter of a multiple-choice answer: B, (B), B. 12, (B) 12."""
    if len(answer) > LONGEST:
        return None
    plain = _TEXT.sub(r"\1", clean(answer)).strip()
    found = _CHOICE.fullmatch(plain)
    if found is None or _ANOTHER_CHOICE.search(found.group(2)):
        return None
    return found.group(1).upper()
