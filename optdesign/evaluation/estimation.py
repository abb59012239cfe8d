"""The algebra of least squares for a design: covariance, variance inflation, aliasing, prediction variance.

With rows x_i of the model matrix X and w_i runs of each, C = (X'WX)^-1 is the covariance of the coefficients
in units of sigma^2. A coefficient is estimable if its unit vector is in the row space of X; the others have
infinite variance. A prediction at x has the variance x' C x, which is infinite if x is outside the row space.

Variances are those of a certificate: the rows of predictions are candidates without weight, and so are the
unit vectors of the coefficients. The rank decision of a design problem does not depend on the sizes of rows
or on the units of columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, solve_triangular

from optdesign.design.certificate import certify
from optdesign.design.measures import Spread, spread
from optdesign.problem.problem import DesignProblem


class Fit(NamedTuple):
    """Least squares of a design, in units of sigma^2."""

    rows: np.ndarray
    """(m, p), rows of the model matrix that are run."""
    weights: np.ndarray
    """(m,), numbers of their runs."""
    rank: int
    root: np.ndarray
    """(p, rank): root root' is a generalised inverse of X'WX, and C if the rank is p."""
    relative: np.ndarray
    """(p,), variances of the coefficients, infinite for those that are not estimable."""
    estimable: np.ndarray
    """(p,) booleans."""
    log_det: float = -np.inf
    """log det of X'WX, if the rank is p."""
    note: str = ""
    """Doubt about the rank, if any."""

    def variances(self, rows: np.ndarray) -> np.ndarray:
        """Return the variance x' C x of predictions; infinite outside the row space."""
        return _variances(self.rows, self.weights, rows)[0]

    def spread(self, rows: np.ndarray) -> Spread:
        """Return log Det of the information X'WX of rows sqrt(w) x, and the trace of its inverse."""
        if self.rank < rows.shape[1]:
            return spread(rows, self.rank)
        return Spread(self.log_det, float(np.sum(self.relative)))

    def regression(self, x: np.ndarray, weights: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return (X'WX)^-1 X'WZ: the coefficients of other columns, NaN for those that are not estimable."""
        white = x @ self.root
        out = np.zeros((len(self.root), z.shape[1]))
        corrections = 2  # the columns of white are orthonormal up to round-off, which these remove
        for _ in range(1 + corrections):
            out += self.root @ (white.T @ (weights[:, None] * (z - x @ out)))
        out[~self.estimable] = np.nan
        return out


def least_squares(x: np.ndarray, weights: np.ndarray) -> Fit:
    """Return the algebra of least squares for rows of a model matrix with so many runs each."""
    used = weights > 0
    rows, w, p = x[used], weights[used], x.shape[1]
    unit = _units(rows)
    estimable = ~np.isinf(_variances(rows, w, np.diag(unit))[0])
    if not rows.any():
        return Fit(rows, w, 0, np.zeros((p, 0)), np.where(estimable, 0.0, np.inf), estimable)
    problem = DesignProblem(rows / unit, budgets=float(w.sum()))
    t = np.sqrt(w)[:, None] * problem.refined.source.whole()[:, : problem.rank]
    # With the longest rows first, the factor is accurate also for rows of very different lengths.
    factor = np.linalg.qr(t[np.argsort(-np.abs(t).max(axis=1), kind="stable")], mode="r")
    maps = problem.span.maps[0][:, : problem.rank] / unit[:, None]
    with np.errstate(over="ignore"):
        root = solve_triangular(factor, maps.T, trans="T", check_finite=False).T
        relative = np.where(estimable, np.sum(root**2, axis=1), np.inf)
    # The factor is that of coordinates in which columns have other units, and other volumes.
    log_det = 2.0 * float(np.sum(np.log(np.abs(np.diag(factor)))) + np.sum(np.log(unit))) + problem.log_volume
    return Fit(rows, w, problem.rank, root, relative, estimable, log_det, problem.rank_note)


def _variances(rows: np.ndarray, weights: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, str]:
    """Return the variances of predictions at some rows, given the rows that are run and their weights.

    The second result is a doubt about the rank of all these rows, if any.
    """
    if not rows.any() or not at.any():
        return np.where(at.any(axis=1), np.inf, 0.0), ""
    unit = _units(rows)
    at = at / unit
    size = _units(at.T)
    problem = DesignProblem(np.vstack([rows / unit, at / size[:, None]]), budgets=float(weights.sum()))
    found = certify(problem, np.append(weights, np.zeros(len(at)))).variances[len(rows) :]
    with np.errstate(over="ignore"):
        return np.where(at.any(axis=1), found * size * size, 0.0), problem.rank_note


def _units(rows: np.ndarray) -> np.ndarray:
    """Return powers of 2 near the largest entries of the columns, 1 for columns of zeros."""
    return np.ldexp(1.0, np.frexp(np.abs(rows).max(axis=0, initial=0.0))[1])


def weighted_column_basis(x: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the column space of a matrix whose rows are multiplied by ``root``.

    The rank is that of the matrix itself, because the products are rounded.
    """
    if not x.any():
        return np.empty((len(x), 0))
    x = x / _units(x)
    left = np.linalg.svd(root[:, None] * x, full_matrices=False)[0]
    return left[:, : DesignProblem(x).rank]


def outside(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the columns of z that are no combinations of columns of x, in their order.

    Residuals of least squares are refined in extended precision, because columns such as 1 and a pressure in
    pascals are nearly dependent, and the square of the pressure differs little from a combination of them.
    """
    wide, x, z = np.longdouble, x / _units(x), z / _units(z)
    left, values, right = np.linalg.svd(x, full_matrices=False)
    rank = DesignProblem(x).rank if x.any() else 0
    rest, terms = z.astype(wide), np.zeros_like(z)
    for _ in range(3):
        part = right[:rank].T @ ((left[:, :rank].T @ rest.astype(np.float64)) / values[:rank, None])
        rest -= x.astype(wide) @ part.astype(wide)
        terms += np.abs(x) @ np.abs(part)
    length, error = (np.linalg.norm(one.astype(np.float64), axis=0) for one in (rest, terms))
    # Functions of the settings are rounded a few times.
    rounded = 16 * np.finfo(float).eps * np.linalg.norm(z, axis=0)
    return np.flatnonzero(length > rounded + (len(values) + 4) * float(np.finfo(wide).eps) * error)


def predicted(
    fits: tuple[Fit, ...], rows: np.ndarray, blocks: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the variances of predictions at rows of several parameter blocks, and notes on their ranks."""
    out, notes = np.empty(len(rows)), []
    for b, fit in enumerate(fits):
        out[blocks == b], note = _variances(fit.rows, fit.weights, rows[blocks == b])
        notes.append(note)
    return out, tuple(dict.fromkeys(note for note in notes if note))


def covariance_of(fits: tuple[Fit, ...]) -> np.ndarray:
    """Return the covariance of the coefficients of all parameter blocks.

    It is infinite on the diagonal and NaN beside it for coefficients that are not estimable.
    """
    out = block_diag(*(fit.root @ fit.root.T for fit in fits))
    lost = ~np.concatenate([fit.estimable for fit in fits])
    out[lost] = out[:, lost] = np.nan
    out[lost, lost] = np.inf
    return out


def correlations(covariance: np.ndarray) -> np.ndarray:
    """Return the correlations of the estimates: 1 on the diagonal, NaN if one is not estimable."""
    with np.errstate(invalid="ignore"):
        deviations = np.sqrt(np.diag(covariance))
        out = covariance / np.outer(deviations, deviations)
    np.fill_diagonal(out, np.where(np.isfinite(deviations), 1.0, np.nan))
    return np.clip(out, -1.0, 1.0)


def inflation(x: np.ndarray, weights: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the variance inflation factors of coefficients with variances c_jj.

    That of a column is its variance times the variance that it would have alone beside the intercept: the sum
    of squares about the mean times c_jj. Without an intercept, and for the intercept itself, it is the sum of
    squares times c_jj.
    """
    if not len(x):
        return variances
    constant = np.ptp(x, axis=0) == 0
    has_intercept = bool(np.any(constant & (x[0] != 0)))
    mean = weights @ x / weights.sum() if has_intercept else np.zeros(x.shape[1])
    mean = np.where(constant, 0.0, mean)
    squares = weights @ (x - mean) ** 2
    with np.errstate(invalid="ignore"):
        return variances * squares
