"""Units that answers carry: which are the same, which convert into each other, and words that are amounts.

A unit is (dimension, factor to the dimension's base). Words that are no unit known here stand for themselves, in the
singular: 5 apples are not 5 pears.
"""

import re
from fractions import Fraction

from papo.verifiers.syntax import words

_LENGTHS = {
    "millimeter millimetre mm": Fraction(1, 1000), "centimeter centimetre cm": Fraction(1, 100),
    "decimeter decimetre dm": Fraction(1, 10), "meter metre m": Fraction(1), "kilometer kilometre km": Fraction(1000),
    "inch inche in": Fraction(254, 10000), "foot feet ft": Fraction(3048, 10000), "yard yd": Fraction(9144, 10000),
    "mile mi": Fraction(1609344, 1000), "micrometer micrometre μm": Fraction(1, 10**6),
    "nanometer nanometre nm": Fraction(1, 10**9), "厘米": Fraction(1, 100), "米": Fraction(1),
    "千米 公里": Fraction(1000),
}  # fmt: skip
_OTHERS = {
    "mass": {
        "milligram mg": Fraction(1, 10**6), "gram g gm 克": Fraction(1, 1000), "kilogram kg kilo 千克": Fraction(1),
        "公斤": Fraction(1), "ton tonne t 吨": Fraction(1000), "pound lb": Fraction(45359237, 10**8),
        "ounce oz": Fraction(45359237, 16 * 10**8),
    },
    "time": {
        "second sec s 秒": Fraction(1), "millisecond ms": Fraction(1, 1000), "minute min 分钟": Fraction(60),
        "hour hr h 小时": Fraction(3600), "day 天": Fraction(86400), "week wk 周": Fraction(604800),
    },
    "years": {"year yr 年": Fraction(12), "month mo": Fraction(1), "decade": Fraction(120), "century": Fraction(1200)},
    "money": {"dollar usd money buck": Fraction(1), "cent penny pennie": Fraction(1, 100), "nickel": Fraction(5, 100)},
    "euro": {"euro eur": Fraction(1)},
    "sterling": {"gbp": Fraction(1)},
    "yuan": {"yuan rmb cny 元": Fraction(1)},
    "angle": {"degree deg 度": Fraction(1), "arcminute": Fraction(1, 60)},
    "turn": {"radian rad": Fraction(1)},
    "volume": {
        "liter litre l L 升": Fraction(1, 1000), "milliliter millilitre ml mL": Fraction(1, 10**6),
        "gallon gal": Fraction(3785411784, 10**12),
    },
    "celsius": {"celsius °c": Fraction(1)},
    "fahrenheit": {"fahrenheit °f": Fraction(1)},
    "speed": {"mph": Fraction(1609344, 3600 * 1000), "kph kmph kmh": Fraction(1000, 3600)},
    "force": {"newton N": Fraction(1)},
    "energy": {"joule J": Fraction(1), "kilojoule kJ": Fraction(1000)},
    "power": {"watt W": Fraction(1), "kilowatt kW": Fraction(1000)},
    "frequency": {"hertz Hz": Fraction(1)},
}  # fmt: skip
_PREFIXES = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_POWERS = {"squared": 2, "cubed": 3}
AMOUNTS = {
    "dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "gross": 144, "lakh": 10**5, "crore": 10**7, "k": 1000, "mn": 10**6, "bn": 10**9, "tn": 10**12, "M": 10**6,
    "千": 1000, "万": 10**4, "亿": 10**8,
}  # fmt: skip
"""Words that multiply the number before them."""


def amount(word: str) -> int | None:
    """What a word multiplies the number before it by; None for any other word. M is a million, m a metre."""
    return AMOUNTS.get(word) or (AMOUNTS.get(_singular(word.lower())) if word != "m" else None)


NEUTRAL = words("unit square_unit cubic_unit sq_unit cu_unit 个 种 次 人")
"""Words that say that a number is a number; they differ from no unit."""
_KNOWN: dict[str, tuple[str, Fraction]] = {
    name: ("length", factor) for names, factor in _LENGTHS.items() for name in names.split()
} | {
    name: (dimension, factor)
    for dimension, table in _OTHERS.items()
    for names, factor in table.items()
    for name in names.split()
}
_DEGREES_OF = re.compile(r"\bdegrees?\s+(?=celsius|fahrenheit)", re.IGNORECASE)
Measure = tuple[tuple[str, int], ...]
"""Dimensions with their powers, sorted."""


def is_unit(word: str) -> bool:
    """Whether a word of running text is a unit known here, longer than a letter."""
    return len(word) > 1 and _look_up(word) is not None and word not in ("in", "mi", "mo")


def is_letter_unit(letter: str) -> bool:
    """Whether a single letter is a unit known here."""
    return len(letter) == 1 and letter in _KNOWN


def measure(unit: str) -> tuple[Measure, Fraction]:
    """Dimensions and factor of a unit written as words with powers: `cm^2`, `km/hour`, `square feet`, `apple`."""
    powers: dict[str, int] = {}
    factor = Fraction(1)
    sign, pending = 1, 1
    for word in _DEGREES_OF.sub("", unit).replace("/", " / ").split():
        if word in ("/", "per", "a", "an"):
            sign = -1
            continue
        name, _, exponent = word.partition("^")
        if name in _PREFIXES:
            pending = _PREFIXES[name]
            continue
        if name in _POWERS and powers:
            last = list(powers)[-1]
            factor *= _KNOWN.get(last, ("", Fraction(1)))[1] ** (powers[last] * (_POWERS[name] - 1))
            powers[last] *= _POWERS[name]
            continue
        power = sign * (int(exponent) if exponent.lstrip("-").isdigit() and len(exponent) < 3 else 1) * pending
        known = _look_up(name)
        dimension, size = known or (_singular(name.lower()), Fraction(1))
        powers[dimension] = powers.get(dimension, 0) + power
        factor *= size**power
        pending = 1
    return _reduced(powers), factor


def is_known(unit: str) -> bool:
    """Whether every word of a unit is known here."""
    names = [word.partition("^")[0] for word in unit.replace("/", " ").split()]
    joining = ("per", "a", "an", *_PREFIXES, *_POWERS)
    return all(name in joining or _look_up(name) is not None for name in names) or is_neutral(unit)


def is_neutral(unit: str) -> bool:
    """Whether a unit says nothing: `units`, `square units`, a Chinese counting word."""
    return "_".join(map(_singular, unit.lower().split())) in NEUTRAL


def _reduced(powers: dict[str, int]) -> Measure:
    """A volume is a length cubed."""
    if "volume" in powers:
        powers["length"] = powers.get("length", 0) + 3 * powers.pop("volume")
    if "speed" in powers:
        count = powers.pop("speed")
        powers["length"] = powers.get("length", 0) + count
        powers["time"] = powers.get("time", 0) - count
    return tuple(sorted((name, power) for name, power in powers.items() if power))


def _look_up(word: str) -> tuple[str, Fraction] | None:
    for form in (word, word.lower(), _singular(word), _singular(word.lower())):
        if form in _KNOWN and (len(form) > 1 or form == word):
            return _KNOWN[form]
    return None


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith("ss") else word
