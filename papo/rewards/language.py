"""The language-consistency reward: the share of a completion that is written in the language asked for.

DeepSeek-R1 (arXiv:2501.12948 §2.3.2) pays the share of target-language words in the reasoning. Words are told apart by
their script; formulas, code and tags are of no language, but for words that no formula has: `$我们先算$` is Chinese.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from papo.values import value

Language = Literal[
    "latin", "chinese", "japanese", "korean", "cyrillic", "greek", "arabic", "hebrew", "devanagari", "thai"
]
_SCRIPTS: dict[Language, tuple[str, ...]] = {
    "latin": ("LATIN",), "chinese": ("CJK",), "japanese": ("CJK", "HIRAGANA", "KATAKANA"), "korean": ("HANGUL",),
    "cyrillic": ("CYRILLIC",), "greek": ("GREEK",), "arabic": ("ARABIC",), "hebrew": ("HEBREW",),
    "devanagari": ("DEVANAGARI",), "thai": ("THAI",),
}  # fmt: skip
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI")
"""Scripts without blanks between words: each letter counts as half a word."""
_NO_LANGUAGE = re.compile(r"```.*?(?:```|\Z)|\$\$[^$]*\$\$|\$[^$\n]*\$|\\\([^)]*\\\)|\\[a-zA-Z]+|</?\w+>", re.DOTALL)
_OF_FORMULAS = re.compile(r"[\u0000-\u03ff\u2000-\u2bff\U0001d400-\U0001d7ff]+")
"""Latin and Greek letters, signs: what formulas, code and tags are made of."""
_WORD = re.compile(r"[^\W\d_]{2,}|[\u3040-\u30ff\u3400-\u9fff]")


@value
class LanguageConsistency:
    """Share of the words that are in the script of `language`, 0 to 1; 1 for a completion without words."""

    kind: Literal["language_consistency"] = "language_consistency"
    language: Language = "latin"
    """The language, by its script: latin stands for English and all that is written like it."""

    @property
    def version(self) -> str:
        """Declared version of the rule with its setting."""
        return f"language_consistency/2 {self.language}"

    def __call__(self, completion: str) -> float:
        """The reward of one completion."""
        wanted = total = 0.0
        for script, weight in _words(_NO_LANGUAGE.sub(_beside_formulas, completion)):
            total += weight
            wanted += weight * (script in _SCRIPTS[self.language])
        return wanted / total if total else 1.0


def _beside_formulas(match: re.Match[str]) -> str:
    return f" {_OF_FORMULAS.sub(' ', match.group())} "


def _words(text: str) -> Iterator[tuple[str, float]]:
    """The script of each word and what it counts."""
    for match in _WORD.finditer(text):
        word = match.group()
        script = _script(word[0])
        yield script, len(word) / 2 if script in _UNSPACED else 1.0


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]
