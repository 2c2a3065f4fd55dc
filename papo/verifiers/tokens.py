"""Cut cleaned text into tokens: numbers (separators and repeating decimals read), words, letters, commands, signs."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from papo.verifiers.spelled import spelled_number
from papo.verifiers.syntax import Unreadable, words
from papo.verifiers.units import is_unit

LONGEST_NUMBER = 400
"""Digits; what is longer is read by no rule."""
MOST_TOKENS = 1500
Kind = Literal["number", "symbol", "command", "sign", "words"]


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    value: Fraction | None = None
    spaced: bool = False
    """White space stands before it."""


FUNCTIONS = words(
    "sin cos tan cot sec csc arcsin arccos arctan arccot sinh cosh tanh coth arcsinh arccosh arctanh asin acos atan ln"
    " log lg exp sqrt cbrt gcd lcm max min abs sgn floor ceil det arg"
)
_NAMES = words(
    "pi alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau phi chi psi"
    " omega infty infinity emptyset"
)
SIGN_WORDS = ("minus", "negative")
_LONGEST_CYCLE, _LONG_CYCLE = 40, 6
JOINING = {"or": "or", "and": "and", "或": "or", "或者": "or", "和": "and", "与": "and", "且": "and", "以及": "and"}
_NUMBER = re.compile(r"\d+(?:,\d+)*(?:\.\d+)?|\.\d+")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_BLANKS = re.compile(r"\d{1,3}(?: \d{3})+(?![\d,])(?:\.\d+)?")
_REPEATING = re.compile(r"(\d*)\.(\d*)\s*\\(?:overline|dot|overbar)\s*(?:\{\s*(\d+)\s*\}|(\d))(?!\s*\\dot)")
_SCIENTIFIC = re.compile(r"(\d+(?:\.\d+)?|\.\d+)[eE]([+-]?\d{1,4})(?![\d.a-zA-Z])")
_TEXT = re.compile(r"\\text\s*\{")
_POWERED = re.compile(r"([A-Za-z]+(?:/[A-Za-z]+)?)\s*\^\s*\{?(\d)\}?")
_CURRENCY = re.compile(r"\\currency\{(\w+)\}")
_COMMAND = re.compile(r"\\([a-zA-Z]+|[{}|\\])")
_LETTERS = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_GOES_ON = re.compile(r"\s*(?:\\ldots|\.{3})")
_SIGNS = re.compile(r"<=|>=|!=|=>|==|\.\.\.|\.{3,}|[-+*/^_!()\[\]{},;:=<>|&%'~]")
_SIGN_NAMES = {"<=": "le", ">=": "ge", "!=": "ne", "==": "=", "...": "ldots"}


def tokenize(text: str) -> list[Token]:
    """The tokens of cleaned text. Raises Unreadable."""
    found: list[Token] = []
    position, depth = 0, 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        spaced = position > 0 and text[position - 1].isspace()
        tokens, position = _next(text, position, spaced=spaced, depth=depth, after=found[-1] if found else None)
        found += tokens
        for token in tokens:
            depth += _depth(token)
        if len(found) > MOST_TOKENS:
            raise Unreadable(f"more than {MOST_TOKENS} tokens")
    return found


def _depth(token: Token) -> int:
    opens = token.text in ("(", "[") if token.kind == "sign" else token.kind == "command" and token.text == "{"
    closes = token.text in (")", "]") if token.kind == "sign" else token.kind == "command" and token.text == "}"
    return int(opens) - int(closes)


def _next(text: str, at: int, *, spaced: bool, depth: int, after: Token | None) -> tuple[list[Token], int]:
    if text[at].isdigit() or (text[at] == "." and text[at + 1 : at + 2].isdigit()) or text.startswith(".\\", at):
        return _number(text, at, spaced=spaced, depth=depth)
    if match := _TEXT.match(text, at):
        return _text(text, match.end(), after)
    if text[at : at + 3].isalpha() and (spelled := _spelled(text, at, after)) is not None:
        return spelled
    for pattern, rule in _RULES:
        if match := pattern.match(text, at):
            return rule(match, spaced, after), match.end()
    raise Unreadable(f"the character {text[at]!r}")


def _sign(match: re.Match[str], spaced: bool, _: Token | None) -> list[Token]:
    sign = match.group()
    name = _SIGN_NAMES.get(sign if len(sign) < len("...") else "...", sign)
    return [_command(name, spaced=spaced) if name.isalpha() else Token("sign", name, spaced=spaced)]


def _command(name: str, *, spaced: bool) -> Token:
    if name == "|":
        return Token("sign", "|", spaced=spaced)
    return Token("command", "infty" if name == "infinity" else name, spaced=spaced)


def _number(text: str, at: int, *, spaced: bool, depth: int) -> tuple[list[Token], int]:
    if match := _REPEATING.match(text, at):
        whole, fixed, repeated = match.group(1), match.group(2), match.group(3) or match.group(4)
        start = int(_short(whole + fixed) or "0")
        cycle = Fraction(int(_short(repeated)), 10 ** len(repeated) - 1)
        return [Token("number", match.group(), (start + cycle) / 10 ** len(fixed), spaced)], match.end()
    if match := _SCIENTIFIC.match(text, at):
        value = Fraction(_short(match.group(1))) * Fraction(10) ** int(match.group(2))
        return [Token("number", match.group(), value, spaced)], match.end()
    match = (depth == 0 and _BLANKS.match(text, at)) or _NUMBER.match(text, at)
    if not match:
        raise Unreadable("a point without digits")
    run = match.group()
    in_list = depth > 0 or text[max(at - 2, 0) : at][-1:] == ","
    if "," in run and (in_list or not _GROUPED.fullmatch(run)):
        run = run.partition(",")[0]
    plain = _short(run.replace(",", "").replace(" ", ""))
    end = at + len(run)
    if (dots := _GOES_ON.match(text, end)) and (repeating := _repeating(plain)) is not None:
        return [Token("number", plain, repeating, spaced)], dots.end()
    if text.startswith(".", end) and "." not in run and not text.startswith("..", end):
        end += 1
    return [Token("number", plain, Fraction(plain), spaced)], end


def _repeating(decimal: str) -> Fraction | None:
    """0.333… as 1/3: a cycle that is shown three times, or twice if it is of six digits or more."""
    whole, _, digits = decimal.partition(".")
    for size in range(1, min(len(digits) // 2, _LONGEST_CYCLE) + 1):
        cycle, times = digits[-size:], 3 if size < _LONG_CYCLE else 2
        if digits.endswith(cycle * times):
            fixed = digits[:-size]
            return (int(whole + fixed or "0") + Fraction(int(cycle), 10**size - 1)) / 10 ** len(fixed)
    return None


def _short(digits: str) -> str:
    if len(digits) > LONGEST_NUMBER:
        raise Unreadable(f"a number of more than {LONGEST_NUMBER} digits")
    return digits


def _spelled(text: str, at: int, after: Token | None) -> tuple[list[Token], int] | None:
    """A number in words, where a number may stand."""
    if after is not None and not (
        (after.kind == "sign" and after.text not in (")", "]", "}", "!", "%", "|", "'"))
        or (after.kind == "command" and after.text in ("or", "and", "{"))
        or (after.kind == "words" and after.text.lower() in SIGN_WORDS)
    ):
        return None
    found = spelled_number(text, at)
    return None if found is None else ([Token("number", text[at : found[1]], found[0])], found[1])


def _text(text: str, start: int, after: Token | None) -> tuple[list[Token], int]:
    r"""The content of \text{…}: words, or mathematics where it is a number or a single letter."""
    level, end = 1, start
    while end < len(text) and level:
        level += (text[end] == "{") - (text[end] == "}")
        end += 1
    if level:
        raise Unreadable("braces that do not match")
    inner = text[start : end - 1].strip()
    if re.fullmatch(r"[A-Za-z\u3400-\u9fff'\s.,:/-]*", inner) and not re.fullmatch(r"\(?[A-Za-z]\)?", inner):
        first, rest = _spelled(inner, 0, after) or ([], 0)
        return first + _words(inner[rest:]), end
    if re.fullmatch(r"[A-Za-z]", inner):
        return [Token("words", inner)], end
    if unit := _POWERED.fullmatch(inner):
        return [Token("words", unit.group(1)), Token("sign", "^"), *tokenize(unit.group(2))], end
    return tokenize(inner), end


def _words(text: str) -> list[Token]:
    """Words as one token; `and`, `or` and commas between them as signs."""
    found: list[Token] = []
    for part in re.split(r"\s+|(,)|(?<=[a-z])-(?=[a-z])", text):
        word = (part or "").strip(".:'")
        if not word:
            continue
        if found and (spelled := _spelled(word, 0, found[-1])) is not None and spelled[1] == len(word):
            found += spelled[0]
        elif word == ",":
            found.append(Token("sign", ","))
        elif word.lower() in JOINING:
            found.append(Token("command", JOINING[word.lower()]))
        elif word in ("/", "-"):
            found.append(Token("sign", word))
        else:
            pieces = filter(None, re.split(r"(/)", word))
            found += [Token("sign" if piece == "/" else "words", piece) for piece in pieces]
    return found


def _letters(run: str, *, spaced: bool, after: Token | None) -> list[Token]:
    """Letters outside \\text: a function, a name, a word, a unit after a number, or a product of symbols."""
    low = run.lower()
    numeric = after is not None and (after.kind in ("number", "words") or after.text in ("}", ")", "]", "/"))
    if numeric and is_unit(run):
        return [Token("words", run, spaced=spaced)]
    if run in FUNCTIONS or low in ("sqrt", "sin", "cos", "tan", "ln", "log", "exp", "arctan", "arcsin", "arccos"):
        return [Token("command", low, spaced=spaced)]
    if run in _NAMES or low in ("pi", "infinity", "inf"):
        return [Token("command", "infty" if low in ("infinity", "inf", "infty") else low if low == "pi" else run)]
    if low in JOINING:
        return [Token("command", JOINING[low])]
    if len(run) > 3 or "'" in run or low in _SHORT_WORDS:
        return [Token("words", run, spaced=spaced)]
    return [Token("symbol", letter, spaced=spaced and index == 0) for index, letter in enumerate(run)]


_SHORT_WORDS = words("dne the is are per yes no odd all not for any one two six ten red sq mod if of to on at in")
_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], bool, Token | None], list[Token]]], ...] = (
    (_CURRENCY, lambda match, _, __: [Token("command", "currency"), Token("words", match.group(1))]),
    (_COMMAND, lambda match, spaced, _: [_command(match.group(1), spaced=spaced)]),
    (_LETTERS, lambda match, spaced, after: _letters(match.group(), spaced=spaced, after=after)),
    (_HAN, lambda match, _, __: _words(match.group())),
    (_SIGNS, _sign),
)
