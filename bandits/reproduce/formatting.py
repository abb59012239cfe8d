"""Numbers as text for captions, tables and verdicts, with the digits that their uncertainty supports."""

from __future__ import annotations

import math
from collections.abc import Iterable

NEGLIGIBLE = 1e-9
"""A spread below this part of the value is round-off; CSV files have 10 digits."""


def plain(value: float) -> str:
    """Return a number without an uncertainty: 4 significant digits, and never fewer than its integer part."""
    return f"{value:,.0f}" if 1000.0 <= abs(value) < 1e15 else f"{value:.4g}"


def rounded(value: float, spread: float) -> str:
    """Return a value rounded to the second significant digit of its spread.

    >>> rounded(0.5, 0.034), rounded(57_720.4, 4_133.0), rounded(0.5, 0.0)
    ('0.500', '57,700', '0.5')
    """
    if not _is_spread(value, spread):
        return plain(value)
    decimals = 1 - math.floor(math.log10(spread))
    if decimals > 12:
        return f"{value:.4g}"
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


def with_spread(value: float, spread: float) -> str:
    """Return "value ± spread" with the digits of :func:`rounded`, or the value alone if the spread is nan."""
    if math.isnan(spread):
        return plain(value)
    if not _is_spread(value, spread):
        return f"{plain(value)} ± 0"
    return f"{rounded(value, spread)} ± {rounded(spread, spread)}"


def interval(value: float, low: float, high: float) -> str:
    """Return "value (95 % interval low to high)" with the digits that half of the interval supports."""
    half = (high - low) / 2.0
    if not math.isfinite(half):
        return f"{plain(value)} (no 95 % interval)"
    return f"{rounded(value, half)} (95 % interval {rounded(low, half)} to {rounded(high, half)})"


def power(number: int) -> str:
    """Return an integer, written as a power of 2 if it is one above 2^9."""
    return f"2^{number.bit_length() - 1}" if number >= 1024 and not number & (number - 1) else f"{number:,}"


def span(numbers: Iterable[int]) -> str:
    """Return the range of some integers, or the only one."""
    found = sorted(set(numbers))
    return power(found[0]) if len(found) == 1 else f"{power(found[0])} to {power(found[-1])}"


def _is_spread(value: float, spread: float) -> bool:
    return math.isfinite(spread) and math.isfinite(value) and spread > NEGLIGIBLE * abs(value)
