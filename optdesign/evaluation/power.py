"""Power: the probability that a test of level alpha finds an effect.

A coefficient b_j with variance sigma^2 c_jj is tested by |t| = |b_j| / (s sqrt(c_jj)), where t has the
noncentral t distribution with noncentrality b_j / (sigma sqrt(c_jj)) and the degrees of freedom of the error.
A term with the coefficients b_L is tested by the F statistic with noncentrality b_L' (C_LL)^-1 b_L / sigma^2.
The square of a noncentral t is a noncentral F with one degree of freedom in the numerator. With F as a ratio
of a noncentral chi-square of m and a chi-square of n degrees of freedom, the power is

    sum_j exp(-h) h^j / j!  I_z(n / 2, m / 2 + j),      h half the noncentrality.

I is the regularised incomplete beta function, and z is such that I_z(n / 2, m / 2) = alpha. SciPy's
noncentral t and F are NaN for some noncentralities.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from optdesign.evaluation.estimation import Fit, weighted_column_basis


def power_of_f(noncentrality: np.ndarray, df: np.ndarray, error_df: float, alpha: float) -> np.ndarray:
    """Return the power of F tests; NaN without degrees of freedom for the error, or if NaN is given.

    >>> power_of_f(np.array([0.0, 9.0]), np.array([1, 1]), 7, 0.05).round(4)
    array([0.05  , 0.7306])
    """
    if not error_df > 0:
        return np.full(len(noncentrality), np.nan)
    critical = special.betaincinv(error_df / 2, df / 2, alpha)
    cases = zip(noncentrality / 2, df / 2, critical, strict=True)
    return np.array([_mixture(half, a, error_df / 2, z, alpha) for half, a, z in cases])


def _mixture(half: float, a: float, b: float, z: float, alpha: float) -> float:
    """Return the sum of I_z(b, a + j) times the Poisson probability of j with mean ``half``."""
    if np.isnan(half):
        return np.nan
    half = min(half, 1e250)  # the power grows with it, and is 1 in double precision here for usual tests
    if half > 5e9:
        # The standard deviation of j is below 2e-5 of its mean, so I_z at the mean is the sum.
        return float(_incomplete_beta(b, a, np.array([half]), z, alpha)[0])
    # Beyond 12 standard deviations the probabilities are below round-off. Many terms are summed in steps.
    radius, most = 12 * np.sqrt(half) + 80, 20_000
    low = max(0.0, np.floor(half - radius))
    step = max(1.0, (half + radius - low) / most)
    j = np.arange(low, half + radius, step)
    log_share = special.xlogy(j, half) - special.gammaln(j + 1)
    share = np.exp(log_share - log_share.max())
    return min(1.0, float(share @ _incomplete_beta(b, a, j, z, alpha) / share.sum()))


def _incomplete_beta(b: float, a: float, j: np.ndarray, z: float, alpha: float) -> np.ndarray:
    """Return I_z(b, a + j), where I_z(b, a) = alpha.

    A z below the range of floating point is 0 or inaccurate. I_z(b, a) is then z^b / (b B(b, a)).
    """
    if z > 1e-280:
        return np.asarray(special.betainc(b, a + j, z))
    return np.asarray(np.minimum(1.0, alpha * np.exp(special.betaln(b, a) - special.betaln(b, a + j))))


def noncentrality(
    terms: list[np.ndarray], coefficients: np.ndarray, fits: Sequence[Fit], sigma: float
) -> np.ndarray:
    """Return b' C^-1 b / sigma^2 for the columns of every term; NaN if a coefficient is not estimable.

    The columns of all parameter blocks are numbered one after the other.
    """
    out = np.full(len(terms), np.nan)
    variances = np.concatenate([fit.relative for fit in fits])
    # Effects beyond this many standard deviations have a power of 1 like this one, and finite squares.
    most = 1e150
    with np.errstate(over="ignore"):
        relative = np.clip(coefficients / sigma, -most, most)
        for k, columns in enumerate(terms):
            if not np.all(np.isfinite(variances[columns])):
                continue
            if len(columns) == 1:
                out[k] = float(relative[columns[0]] ** 2 / variances[columns[0]])
            else:
                block, own = divmod(columns, len(fits[0].relative))
                out[k] = _squared_length(fits[block[0]], own, relative[columns])
    return out


def _squared_length(fit: Fit, own: np.ndarray, b: np.ndarray) -> float:
    """Return the squared length of the part of X_L b that is orthogonal to the other columns.

    This is b' (C_LL)^-1 b. It keeps its digits if C_LL is nearly singular.
    """
    root = np.sqrt(fit.weights)
    image = root * (fit.rows[:, own] @ b)
    basis = weighted_column_basis(np.delete(fit.rows, own, axis=1), root)
    for _ in range(2):  # the second time removes round-off of the first
        image -= basis @ (basis.T @ image)
    return float(image @ image)
