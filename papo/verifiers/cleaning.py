"""From the text of an answer, as models and data sets write it, to the spellings that the tokenizer knows.

LaTeX layout goes, look-alike characters become ASCII or a command, synonyms one command. Meaning stays: superscripts
become powers (10² is not 102), vulgar fractions become fractions, a thousands separator goes only between digits.
Every rule is linear in the text's length.
"""

import re
import unicodedata
from functools import lru_cache

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi"
    " omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_GREEK = dict(zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ", _GREEK_NAMES.split(), strict=True))
_SIGNS = {
    "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "•": r"\cdot ", "∗": "*", "÷": "/", "∕": "/",
    "⁄": "/", "≤": r"\le ", "⩽": r"\le ", "≦": r"\le ", "≥": r"\ge ", "⩾": r"\ge ", "≧": r"\ge ", "≠": r"\ne ",
    "≈": r"\approx ", "≃": r"\approx ", "≡": r"\equiv ", "∞": r"\infty ", "√": r"\sqrt ", "∪": r"\cup ",
    "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ", "°": r"\degree ", "º": r"\degree ", "±": r"\pm ", "∓": r"\mp ",
    "ℝ": r"\reals ", "ℤ": r"\integers ", "ℕ": r"\naturals ", "ℚ": r"\rationals ", "ℂ": r"\complexes ",
    "→": r"\to ", "∖": r"\setminus ", "…": r"\ldots ", "⋯": r"\ldots ", "，": ",", "、": ",", "。": ".",
    "；": ";", "：": ":", "（": "(", "）": ")", "【": "[", "】": "]", "“": "", "”": "", "‘": "'", "’": "'", "′": "'",
    "«": "", "»": "", "⟨": r"\langle ", "⟩": r"\rangle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ",
    "⌉": r"\rceil ", "¢": r"\text{ cents}", "∧": r"\text{ and }", "∨": r"\text{ or }",
}  # fmt: skip
_DASHES = "\u2212\u2010\u2011\u2012\u2013\u2014\u2015\ufe63\uff0d\u207b"
_TABLE: dict[int, str] = (
    {ord(sign): text for sign, text in _SIGNS.items()}
    | {ord(letter): f"\\{name} " for letter, name in _GREEK.items()}
    | dict.fromkeys(map(ord, _DASHES), "-")
)
_SCRIPTS = re.compile(f"[{''.join(_SUPERSCRIPTS)}]+|[{''.join(_SUBSCRIPTS)}]+")
_LAYOUT = re.compile(
    r"\\(?:left|right|bigl|bigr|Bigl|Bigr|biggl|biggr|Biggl|Biggr|bigm|big|Big|bigg|Bigg|middle)\s*(?![a-zA-Z])\.?"
    r"|\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits|quad|qquad|mathstrut|strut|checkmark|hfill|allowbreak|"
    r"noindent|centering|square|blacksquare|null|relax|nonumber|boldmath|bf|rm|it|large|Large|LARGE|huge|Huge|small|"
    r"tiny|normalsize|medspace|thinspace|enspace|thickspace|negthinspace)(?![a-zA-Z])"
    r"|\\color\s*(?:\{[^{}]*\}|[a-z]+)|\\(?:hspace|vspace|phantom|hphantom|vphantom|label|tag)\*?\s*\{[^{}]*\}"
)
_WITHOUT_NAME = re.compile(
    r"\\(?:mathbf|mathit|mathsf|mathtt|mathcal|mathscr|boldsymbol|bm|pmb|ensuremath|underline|fbox|boxed|textcolor\s*"
    r"\{[^{}]*\}|mathbin|mathop|mathrel|mathord|hbox|smash|vcenter)(?![a-zA-Z])"
)
_SYNONYMS = {
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "dbinom": "binom", "tbinom": "binom", "leq": "le",
    "leqslant": "le", "geq": "ge", "geqslant": "ge", "leqq": "le", "geqq": "ge", "neq": "ne", "lt": "<",
    "gt": ">", "mbox": "text", "textbf": "text", "textit": "text", "textrm": "text", "textsf": "text",
    "texttt": "text", "emph": "text", "textnormal": "text", "textup": "text", "varnothing": "emptyset",
    "degree": "degree", "cdots": "ldots", "dots": "ldots", "dotsc": "ldots", "dotsb": "ldots",
    "rightarrow": "to", "longrightarrow": "to", "R": "reals", "Reals": "reals", "Z": "integers",
    "N": "naturals", "Q": "rationals", "backslash": "setminus", "lvert": "|", "rvert": "|", "vert": "|",
    "mid": "|", "lbrace": "\\{", "rbrace": "\\}", "lbrack": "[", "rbrack": "]", "lparen": "(", "rparen": ")",
    "ast": "*", "div": "/", "colon": ":", "tg": "tan", "ctg": "cot", "cosec": "csc", "arctg": "arctan",
    "land": "wedge", "lor": "vee", "simeq": "approx", "sim": "approx", "thickapprox": "approx",
    "varphi": "phi", "varepsilon": "epsilon", "vartheta": "theta", "overrightarrow": "vec", "widehat": "hat",
    "bar": "overline", "lg": "lg", "prime": "'",
}  # fmt: skip
_DOUBLE_STRUCK = {
    "R": "reals", "Z": "integers", "N": "naturals", "Q": "rationals", "C": "complexes"
}  # fmt: skip
_ROW = "\ue000"
"""Stands for a LaTeX line break while other commands are rewritten (private use: no text has it, they were removed)."""
_QUANTIFIER = re.compile(
    r"[,;]?\s*(?:\\text\s*\{\s*)?(?:for|where|with)\s+(?:(?:all|any|every|some|each)\s+)?(?:positive\s+|natural\s+|non-negative\s+)?"
    r"(?:(?:integers?|real\s+numbers?|reals?|numbers?)\s*\}?\s*[a-zA-Z]|\}?\s*[a-zA-Z]\s*(?:\\in\s*\\(?:integers|naturals|reals)|"
    r"(?:\\text\s*\{)?\s*(?:is\s+|are\s+)?(?:an?\s+|any\s+)?(?:arbitrary\s+)?integers?\s*\}?))\s*\}?\s*$"
    r"|[,;]\s*\(?[a-z]\s*\\in\s*\\(?:integers|naturals)\s*\)?\s*$|\([a-z]\s*\\in\s*\\(?:integers|naturals)\s*\)\s*$"
)
"""What letters range over, at the end: “for k ∈ ℤ”, “where n is an integer”, “for all positive integers n”."""
_RANGING = re.compile(
    r"(?<![A-Za-z])([a-zA-Z])\s*(?:\\in|is\b|are\b|an\b)|(?:integers?|numbers?|reals?)\s*\}?\s*([a-zA-Z])(?![A-Za-z])"
)
"""The letter that a quantifier is about."""
_PLAIN_FORMS = (
    (re.compile(r"(?<=\d)\s*[xX]\s*(?=10\s*\^)"), r" \\times "),
    (re.compile(r"(?<=[)\]}])\s*U\s*(?=[(\[\\])"), r" \\cup "),
    (re.compile(r"(?<=\d)\s*\*\s*I(?![A-Za-z])"), " i "),
    (re.compile(r"(:\s*\d\d)\s*([aApP])\.?\s?[mM](?![A-Za-z])\.?"), r"\1\\text{\2m}"),
    (re.compile(r"(?<![A-Za-z\\])oo(?![A-Za-z])"), r"\\infty "),
    (
        re.compile(r"\\frac\s*\{\s*\\text\s*\{([^{}]*)\}\s*\}\s*\{\s*\\text\s*\{([^{}]*)\}(\s*\^\s*\{?\d\}?)?\s*\}"),
        r"\\text{\1}/\\text{\2}\3",
    ),
    (re.compile(r"(?<=\d)\s?\.{3,}"), r"\\ldots "),
)
"""What programs and plain text write: 3 x 10^5, (1, 2) U (3, oo), 2*I, 3:30 pm; units over units; 0.33..."""
_ROWS = re.compile(
    r"\\begin\s*\{(aligned|align|gathered|gather|split|equation|multline|cases)\*?\}(.*?)\\end\s*\{\1\*?\}", re.DOTALL
)
_CIRCLE = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ|o(?![a-zA-Z]))|\\textdegree|\\degrees?(?![a-zA-Z])")
_CURRENCY = re.compile(r"(?:\\\$|\\pounds|\\euro|[€£¥])\s*")
_LONE_DOLLAR = re.compile(r"^([^$]*(?<!\\))\$(?=\s*[\d.][^$]*$)")
"""The only dollar sign of a text, before a number: it is money, as no formula ends."""
_CURRENCIES = {"\\$": "dollars", "€": "euros", "\\euro": "euros", "£": "pounds", "\\pounds": "pounds", "¥": "yuan"}


def clean(text: str) -> str:
    """The answer without layout, in one spelling a sign. Reading it again changes nothing."""
    return _cleaned(text)[0]


def quantified(text: str) -> tuple[str, str] | None:
    """The letter that an answer says ranges over numbers, and over which: k and integers. None if it says nothing."""
    said = _cleaned(text)[1]
    letter = _RANGING.search(said)
    if letter is None:
        return None
    if re.search(r"positive|natural", said) and not re.search(r"non-?negative", said):
        return letter.group(1) or letter.group(2), "naturals"
    return letter.group(1) or letter.group(2), "integers" if "integer" in said else ""


@lru_cache(maxsize=1024)
def _cleaned(text: str) -> tuple[str, str]:
    """The answer, and what it says its letters range over."""
    text = "".join(char for char in text if char in "\n\t" or unicodedata.category(char)[0] != "C")
    text = text.replace("\\\\", _ROW)
    if "\\begin" in text:
        text = _ROWS.sub(_rows, text)
    text = _numbers_in_other_scripts(_vulgar(_SCRIPTS.sub(_script, text)))
    text = text.translate(_TABLE)
    text = re.sub(r"(?<=\d)\s*,\s*\\!\s*(?=\d)|(?<=\d)\{\s*,\s*\}(?=\d)", ",", text)
    text = re.sub(r"(?<=\d)(?:\\[,;: ]|~|\{\s*\\[,;: ]\s*\})(?=\d{3}(?!\d))", " ", text)
    text = re.sub(r"\\[,;:!>]|\\ |~", " ", text.replace("$$", "$"))
    text = _WITHOUT_NAME.sub(" ", _LAYOUT.sub(" ", text))
    text = re.sub(r"\\mathbb\s*(?:\{\s*([A-Z])\s*\}|([A-Z]))", _struck, text)
    text = re.sub(r"\\operatorname\*?\s*\{\s*([a-zA-Z]+)\s*\}", r"\\\1 ", text)
    text = re.sub(r"\\mathrm\s*\{\s*(i|e|d)\s*\}", r" \1 ", text).replace(r"\mathrm", r"\text")
    text = _LONE_DOLLAR.sub(r"\1\\$", text)
    text = re.sub(r"\\([a-zA-Z]+)\*?", _synonym, _CIRCLE.sub(r"\\degree ", text))
    text = re.sub(r"\\\(|\\\)|\\\[|\\\]|(?<!\\)\$", " ", text)
    text = _CURRENCY.sub(lambda match: f"\\currency{{{_CURRENCIES.get(match.group().strip(), 'money')}}}", text)
    text = re.sub(r"\\([%#&])", r"\1", text).strip(" *`\n").replace("**", "^")
    said = _QUANTIFIER.search(text)
    text = text if said is None else text[: said.start()]
    for pattern, plain in _PLAIN_FORMS:
        text = pattern.sub(plain, text)
    text = re.sub(r"\b([aApP])\.\s?[mM]\b\.?", r"\1m", text)
    return _edges(text.replace(_ROW, "\\\\")), "" if said is None else said.group()


def _edges(text: str) -> str:
    """Without marks and stops around it: they belong to the sentence, not to the answer."""
    previous = None
    while text != previous:
        previous = text
        text = text.strip().strip("`*").rstrip(".,;:?").strip()
        if text.endswith("\\") and not text.endswith("\\\\"):
            text = text[:-1]
    return text


def _rows(match: re.Match[str]) -> str:
    """Lines of an environment that only lays out, as a list; a line that begins with = goes on with the last."""
    body = match.group(2)
    if "\\begin" in body or (match.group(1) == "cases" and "&" in body):
        return match.group()
    rows = [row.strip() for row in body.replace("&", " ").split(_ROW)]
    return "".join(
        ("" if not place else " " if row.startswith("=") else ", ") + row for place, row in enumerate(rows) if row
    )


def _script(match: re.Match[str]) -> str:
    found = match.group()
    if found[0] in _SUPERSCRIPTS:
        return f"^{{{''.join(_SUPERSCRIPTS[char] for char in found)}}}"
    return f"_{{{''.join(_SUBSCRIPTS[char] for char in found)}}}"


def _vulgar(text: str) -> str:
    """½ as a fraction; a digit before it makes a mixed number."""
    if text.isascii():
        return text
    parts: list[str] = []
    for char in text:
        spelled = unicodedata.normalize("NFKC", char) if unicodedata.category(char) == "No" else ""
        top, slash, bottom = spelled.partition("⁄")
        parts.append(f" \\frac{{{top}}}{{{bottom}}} " if slash and top and bottom else char)
    return "".join(parts)


def _numbers_in_other_scripts(text: str) -> str:
    """Decimal digits of any script and full-width forms as ASCII."""
    if text.isascii():
        return text
    return "".join(
        str(unicodedata.decimal(char)) if char.isdecimal() else chr(ord(char) - 0xFEE0) if _is_wide(char) else char
        for char in text
    )


def _is_wide(char: str) -> bool:
    return "\uff01" <= char <= "\uff5e" and char not in "，；：（）\uff0d"


def _struck(match: re.Match[str]) -> str:
    letter = match.group(1) or match.group(2)
    return f"\\{_DOUBLE_STRUCK.get(letter, letter)} "


def _synonym(match: re.Match[str]) -> str:
    name = match.group(1)
    other = _SYNONYMS.get(name)
    if other is None:
        return f"\\{name}"
    return f"\\{other}" if other.isalpha() else f" {other} "
