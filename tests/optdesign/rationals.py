"""Rational numbers for tests: the unit round-off and square roots."""

from decimal import Decimal, localcontext
from fractions import Fraction

U = Fraction(1, 2**53)
"""Unit round-off of double precision."""


def root(value: Fraction) -> Fraction:
    """Return the square root to 60 digits."""
    with localcontext(prec=60):
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).sqrt())
