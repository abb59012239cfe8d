"""Power: the probability that a test of level alpha finds an effect.

A coefficient b_j with variance sigma^2 c_jj is tested by |t| = |b_j| / (s sqrt(c_jj)), where t has the
noncentral t distribution with noncentrality b_j / (sigma sqrt(c_jj)) and the degrees of freedom of the error.
A term with the coefficients b_L is tested by the F statistic with noncentrality b_L' (C_LL)^-1 b_L / sigma^2.
The square of a noncentral t is a noncentral F with one degree of freedom in the numerator, which is computed
here: the lower tail of SciPy's noncentral t is NaN for some noncentralities of 10 and more.
"""

from __future__ import annotations

import numpy as np
from scipy import special


def power_of_f(noncentrality: np.ndarray, df: np.ndarray, error_df: float, alpha: float) -> np.ndarray:
    """Return the power of F tests; NaN without degrees of freedom for the error, or if NaN is given.

    >>> power_of_f(np.array([0.0, 9.0]), np.array([1, 1]), 7, 0.05).round(4)
    array([0.05  , 0.7306])
    """
    if not error_df > 0:
        return np.full(len(noncentrality), np.nan)
    critical = special.fdtri(df, error_df, 1 - alpha)
    certain = 1e10  # noncentrality from which the power is 1 in double precision for every sensible alpha
    below = special.ncfdtr(df, error_df, np.minimum(noncentrality, certain), critical)
    return np.where(noncentrality >= certain, 1.0, 1 - below)


def noncentrality(
    terms: list[np.ndarray], coefficients: np.ndarray, covariance: np.ndarray, sigma: float
) -> np.ndarray:
    """Return b' C^-1 b / sigma^2 for the columns of every term; NaN if a coefficient is not estimable."""
    out = np.full(len(terms), np.nan)
    for k, columns in enumerate(terms):
        own = covariance[np.ix_(columns, columns)]
        if np.all(np.isfinite(np.diag(own))):
            out[k] = coefficients[columns] @ np.linalg.solve(own, coefficients[columns]) / sigma**2
    return out
