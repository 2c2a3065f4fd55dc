"""Exact rational powers of rational numbers, of bounded size."""

from fractions import Fraction

LARGEST_BITS = 100_000
"""Of a power that is worked out; beyond it stays as it is written."""
_LARGEST_DEGREE, _LARGEST_RADICAND = 64, 4096


def rational_power(base: Fraction, exponent: Fraction) -> Fraction | None:
    """The exact power, where it is rational and of bounded size."""
    if base in (0, 1, -1):
        return _of_unit(base, exponent)
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(exponent) * size > LARGEST_BITS:
        return None
    degree = exponent.denominator
    if degree == 1:
        return base**exponent.numerator
    if degree > _LARGEST_DEGREE or (base < 0 and degree % 2 == 0) or size > _LARGEST_RADICAND:
        return None
    top, bottom = _whole_root(abs(base.numerator), degree), _whole_root(base.denominator, degree)
    if top is None or bottom is None:
        return None
    return (Fraction(top, bottom) * (-1 if base < 0 else 1)) ** exponent.numerator


def _of_unit(base: Fraction, exponent: Fraction) -> Fraction | None:
    """Powers of 0, 1 and −1, whatever their exponent's size."""
    if base == 0:
        return Fraction(0) if exponent > 0 else None
    if base == 1:
        return base
    if exponent.denominator % 2 == 0:
        return None
    return base if exponent.numerator % 2 else Fraction(1)


def _whole_root(value: int, degree: int) -> int | None:
    if value < 2:
        return value
    low, high = 1, 1 << (value.bit_length() // degree + 1)
    while low <= high:
        middle = (low + high) // 2
        power = middle**degree
        if power == value:
            return middle
        low, high = (middle + 1, high) if power < value else (low, middle - 1)
    return None
