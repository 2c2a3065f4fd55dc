"""Text that nobody vouches for, made safe to show: prompts, completions, judges' replies, file names, error texts.

A terminal obeys control sequences, and bidirectional or invisible characters make a text look like another one. Both
are shown as escapes (`\\x1b`, `\\u202e`), so that what is seen is what is there.
"""

import re
import unicodedata

_SHOWN_AS_THEY_ARE = "\n\t"
_JOINERS = "\u200c\u200d"
"""Part of the spelling of some scripts and of emoji; between other letters they only hide."""
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\U000e0000-\U000e0fff]")
"""No control characters by category, and yet nothing is seen of them."""
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
_PLAIN = re.compile(r"[\x20-\x7e\n\t]*")
_BACKTICKS = re.compile("`+")


def printable(text: str) -> str:
    """`text` with its control, bidirectional and invisible characters as escapes. Line breaks and tabs stay."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(_escape(char) if _is_hidden(char) and not _joins(text, at) else char for at, char in enumerate(text))


def one_line(text: str) -> str:
    """`text` as `printable` has it, its line breaks and tabs as escapes as well."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def code_span(text: str) -> str:
    """`text` as literal code in Markdown, whatever it holds."""
    shown = one_line(text)
    fence = "`" * (max(map(len, _BACKTICKS.findall(shown)), default=0) + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{space}{shown}{space}{fence}"


def _is_hidden(char: str) -> bool:
    if char in _SHOWN_AS_THEY_ARE:
        return False
    return unicodedata.category(char) in _HIDDEN or _INVISIBLE.match(char) is not None


def _joins(text: str, at: int) -> bool:
    """Whether a joiner stands between two characters of the scripts, or emoji, that are spelled with it."""
    if text[at] not in _JOINERS or not 0 < at < len(text) - 1:
        return False
    return all(ord(char) > 0x2FF and not _is_hidden(char) for char in (text[at - 1], text[at + 1]))


def _escape(char: str) -> str:
    number = ord(char)
    return f"\\x{number:02x}" if number <= 0xFF else f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
