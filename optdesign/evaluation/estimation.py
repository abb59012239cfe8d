"""The algebra of least squares for a design: covariance, variance inflation, aliasing, prediction variance.

With rows x_i of the model matrix X and w_i runs of each, C = (X'WX)^-1 is the covariance of the coefficients
in units of sigma^2. A coefficient is estimable if its unit vector is in the row space of X; the others have
infinite variance. A prediction at x has the variance x' C x, which is infinite if x is outside the row space.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from optdesign.algebra.whitening import measured
from optdesign.design.measures import Spread, spread
from optdesign.factors.coding import SINGULAR_VALUE_RTOL, span_rtol
from optdesign.problem.exact_rank import rank_of
from optdesign.problem.problem import DesignProblem


class Fit(NamedTuple):
    """Least squares of a design, in units of sigma^2."""

    root: np.ndarray
    """(p, rank), a root of C: x' root has the squared length x' C x for every x in the row space."""
    null: np.ndarray
    """(p, p - rank): an orthonormal basis of the null space, for columns scaled to length 1."""
    scale: np.ndarray
    """Lengths of the columns, 1 for those of zeros."""
    is_zero: np.ndarray
    """(p,) booleans: columns that are 0 in all runs."""
    rank: int
    estimable: np.ndarray
    """(p,) booleans."""
    rtol: float
    """Part of a vector outside of the row space that counts as round-off."""

    def variances(self, rows: np.ndarray) -> np.ndarray:
        """Return the variance x' C x of predictions; infinite outside the row space."""
        out = np.sum((rows @ self.root) ** 2, axis=1)
        if self.null.shape[1]:
            scaled = rows / self.scale
            scaled[:, self.is_zero] = 0.0
            scaled = rows_of_size_one(scaled)
            outside = np.linalg.norm(scaled @ self.null, axis=1) > self.rtol * np.linalg.norm(scaled, axis=1)
            # The runs give no unit to a column of zeros, so its own largest entry is the unit.
            beside = np.abs(rows[:, self.is_zero])
            outside |= np.any(beside > 1e-12 * beside.max(axis=0, initial=0.0), axis=1)
            out = np.where(outside, np.inf, out)
        return out

    def spread(self, rows: np.ndarray) -> Spread:
        """Return log Det of the information X'WX of rows sqrt(w) x, and the trace of its inverse."""
        if self.rank < len(self.scale):
            return spread(rows, self.rank)
        log_det = np.linalg.slogdet(self.root * self.scale[:, None])[1] - np.sum(np.log(self.scale))
        return Spread(-2 * float(log_det), float(np.sum(self.root**2)))

    def regression(self, x: np.ndarray, weights: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return (X'WX)^-1 X'WZ: the coefficients of other columns, NaN for those that are not estimable."""
        white = x @ self.root
        out = np.zeros((len(self.root), z.shape[1]))
        for _ in range(
            3
        ):  # the columns of white are orthonormal up to round-off, which two corrections remove
            out += self.root @ (white.T @ (weights[:, None] * (z - x @ out)))
        out[~self.estimable] = np.nan
        return out


def rows_of_size_one(rows: np.ndarray) -> np.ndarray:
    """Return rows divided by their largest entries, so that their lengths neither overflow nor become 0."""
    size = np.abs(rows).max(axis=1, initial=0.0)
    return rows / np.where(size > 0, size, 1.0)[:, None]


def least_squares(x: np.ndarray, weights: np.ndarray) -> Fit:
    """Return the algebra of least squares for rows of a model matrix with so many runs each."""
    rows = np.sqrt(weights)[:, None] * x
    scale = np.linalg.norm(rows, axis=0)
    is_zero = scale == 0
    scale = np.where(is_zero, 1.0, scale)
    _, values, right = np.linalg.svd(np.linalg.qr(rows / scale, mode="r"))
    rank = int(np.sum(values > SINGULAR_VALUE_RTOL * values.max(initial=0.0)))
    null = right[rank:].T
    root = right[:rank].T / values[:rank] / scale[:, None]
    if rank < x.shape[1]:
        found = _root_of_full_rank(x, weights)
        if found is not None:
            rank, root, null = x.shape[1], found, right[:0].T
    rtol = span_rtol(values[:rank])
    estimable = np.linalg.norm(null, axis=1) <= rtol
    return Fit(root, null, scale, is_zero, rank, estimable, rtol)


def column_basis(x: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the column space of a matrix."""
    length = np.linalg.norm(x, axis=0)
    left, values, _ = np.linalg.svd(x / np.where(length > 0, length, 1.0), full_matrices=False)
    rank = int(np.sum(values > SINGULAR_VALUE_RTOL * values.max(initial=0.0)))
    return left[:, : x.shape[1] if rank < x.shape[1] == rank_of(x) else rank]


def _root_of_full_rank(x: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
    """Return A with A A' = (X'WX)^-1 if the rank is full in exact arithmetic, or None.

    The rows are whitened in the coordinates of a design problem, which depend neither on the sizes of rows
    nor on the units of columns. If that proves nothing, the result is None as well.
    """
    used = weights > 0
    if rank_of(x[used]) < x.shape[1]:
        return None
    try:
        problem = DesignProblem(x[used], budgets=float(weights.sum()))
    except ValueError:  # beyond the range of coordinates
        return None
    support = np.arange(problem.n_candidates)
    found = measured(problem, problem.refined, support, weights[used])
    if problem.rank < x.shape[1] or not found.full:
        return None
    return problem.span.maps[0] @ found.white[0]


def predicted(fits: tuple[Fit, ...], rows: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return the variances of predictions at rows of several parameter blocks."""
    out = np.empty(len(rows))
    for b, fit in enumerate(fits):
        out[blocks == b] = fit.variances(rows[blocks == b])
    return out


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
