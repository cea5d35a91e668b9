"""Numbers as text, the same on every page and in the terminal.

Digits follow from the uncertainty where it is known, else three digits count. A minus is a minus
sign, zero has none, and powers of ten appear only below 0.001 and from 100,000 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log10

MINUS = "\N{MINUS SIGN}"
MISSING = "\N{EN DASH}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SMALLEST, _LARGEST = 1e-3, 1e5


def fixed(value: float | None, decimals: int) -> str:
    """Number with the given decimals; a dash if it is missing or not finite."""
    if value is None or not isfinite(value):
        return MISSING
    text = f"{value:.{max(decimals, 0)}f}"
    if text.startswith("-"):
        text = text[1:] if not text.strip("-0.") else MINUS + text[1:]
    return text


def decimals_for(size: float, digits: int = 3) -> int:
    """Decimals that show a number of the given size with `digits` digits."""
    if not isfinite(size) or size == 0.0:
        return 0
    rounded = float(f"{abs(size):.{digits - 1}e}")
    return max(0, digits - 1 - floor(log10(rounded)))


def significant(value: float | None, digits: int = 3) -> str:
    """Number with `digits` digits that count, trailing zeros kept."""
    if value is None or not isfinite(value):
        return MISSING
    size = abs(value)
    if size != 0.0 and not _SMALLEST <= size < _LARGEST:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        power = str(int(exponent)).translate(_SUPERSCRIPTS)
        return f"{fixed(float(mantissa), digits - 1)} × 10{power}"
    return fixed(value, decimals_for(size, digits))


def quantity(value: float | None, unit: str, digits: int = 3) -> str:
    """Number with `digits` digits that count, and its unit."""
    text = significant(value, digits)
    return text if text == MISSING or not unit else f"{text} {unit}"


def interval(value: float, half_width: float, unit: str = "") -> str:
    """Value and half width, both to two digits of the half width."""
    suffix = f" {unit}" if unit else ""
    if not isfinite(half_width) or half_width <= 0.0:
        return f"{significant(value)}{suffix}"
    decimals = decimals_for(half_width, 2)
    if decimals > 6:
        return f"{significant(value)} ± {significant(half_width, 2)}{suffix}"
    return f"{fixed(value, decimals)} ± {fixed(half_width, decimals)}{suffix}"


def percent(fraction: float | None, decimals: int = 1) -> str:
    """Fraction in percent."""
    if fraction is None or not isfinite(fraction):
        return MISSING
    return f"{fixed(100.0 * fraction, decimals)} %"


def column(values: Sequence[float], digits: int = 3) -> list[str]:
    """Numbers of one table column with the same decimals: `digits` for the median size."""
    sizes = sorted(abs(v) for v in values if isfinite(v) and v != 0.0)
    decimals = decimals_for(sizes[len(sizes) // 2], digits) if sizes else 0
    return [fixed(value, decimals) for value in values]


def whole(value: int) -> str:
    """Count with narrow spaces between thousands."""
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def count_text(count: int, noun: str) -> str:
    """Number of things; the noun is in the singular."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
