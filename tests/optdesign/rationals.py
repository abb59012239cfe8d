"""Rational numbers for tests: the unit round-off, its bounds and square roots."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

U = Fraction(1, 2**53)
"""Unit round-off of double precision."""


def root(value: Fraction) -> Fraction:
    """Return the square root to 60 digits."""
    with localcontext(prec=60):
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).sqrt())


def lost(n: int) -> Fraction:
    """Higham's bound on the relative error of n roundings."""
    return n * U / (1 - n * U)


def exactly(values: np.ndarray) -> list[Fraction]:
    """Return the doubles as fractions."""
    return [Fraction(v) for v in np.asarray(values, float).tolist()]
