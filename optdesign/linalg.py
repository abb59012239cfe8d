"""Pseudo-determinants and pseudo-inverses of symmetric positive semi-definite matrices.

The pseudo-determinant of degree s of an n x n matrix is  Det_s(A) = lim det(A + eps I) / eps^(n - s)  as eps
-> 0: the product of the non-zero eigenvalues if s = rank(A), zero if s > rank(A), infinite if s < rank(A).
Solvers work in the range of each block (:mod:`optdesign.problem.span`) and need none of this; the functions
are here for checking them, and for users whose matrices come without such a basis.

Eigenvalues of magnitude at most ``rtol`` times the largest count as zero; the default is n times the
machine epsilon.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import orth

from optdesign.errors import InputError
from optdesign.problem.inputs import floats


def eigen_range(a: ArrayLike, rtol: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the non-zero eigenvalues of a symmetric matrix, and orthonormal eigenvectors as columns.

    Parameters
    ----------
    a : array_like of shape (n, n)
        Symmetric matrix.
    rtol : float, optional
        Eigenvalues of at most ``rtol`` times the largest count as zero. Default: n times the machine epsilon.

    Returns
    -------
    values : ndarray of shape (rank,)
        Non-zero eigenvalues.
    vectors : ndarray of shape (n, rank)
        Eigenvectors.

    See Also
    --------
    optdesign.linalg.range_basis : Return a basis of the column space of any matrix.

    Examples
    --------
    >>> values, vectors = eigen_range([[2.0, 0.0], [0.0, 0.0]])
    >>> values.tolist(), vectors.shape
    ([2.0], (2, 1))
    """
    values, vectors, exponent = _scaled_range(a, rtol)
    return np.ldexp(values, exponent), vectors


def range_basis(a: ArrayLike, rtol: float | None = None) -> np.ndarray:
    """Return an orthonormal basis of the column space of any matrix.

    Parameters
    ----------
    a : array_like of shape (n, m)
        Matrix.
    rtol : float, optional
        Singular values of at most ``rtol`` times the largest count as zero. Default: the larger dimension
        times the machine epsilon.

    Returns
    -------
    ndarray of shape (n, rank)
        Basis vectors as columns.

    See Also
    --------
    optdesign.linalg.eigen_range : Return eigenvalues and eigenvectors of a symmetric matrix.

    Examples
    --------
    >>> range_basis([[3.0, 6.0], [0.0, 0.0]]).shape
    (2, 1)
    """
    matrix = floats(a, "a")
    if matrix.ndim != 2:
        raise InputError("a", "must be a matrix", f"got shape {matrix.shape}", "Put one vector a column.")
    return orth(_scaled(matrix)[0], rcond=_tolerance(max(matrix.shape), rtol))


def pseudo_det(a: ArrayLike, degree: int | None = None, *, rtol: float | None = None) -> float:
    """Return the pseudo-determinant of a given degree.

    It overflows to infinity and underflows to 0 outside the range of floating point.

    Parameters
    ----------
    a : array_like of shape (n, n)
        Symmetric matrix.
    degree : int, optional
        Degree. Default: the rank.
    rtol : float, optional
        Eigenvalues of at most ``rtol`` times the largest count as zero. Default: n times the machine epsilon.

    Returns
    -------
    float
        Product of the non-zero eigenvalues if the degree is the rank, 0 if it is larger, infinity if it is
        smaller.

    See Also
    --------
    optdesign.linalg.log_pseudo_det : Return the logarithm, without overflow or underflow.

    Examples
    --------
    >>> a = [[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]]
    >>> round(pseudo_det(a), 12), pseudo_det(a, 3), pseudo_det(a, 1)
    (6.0, 0.0, inf)
    """
    values, vectors, exponent = _scaled_range(a, rtol)
    n = len(vectors)
    if degree is not None and not (isinstance(degree, Integral) and 0 <= degree <= n):
        remedy = "Leave it out for the rank."
        raise InputError("degree", f"must be an integer between 0 and {n}", f"got {degree}", remedy)
    if degree is None or degree == len(values):
        product, power = 1.0, exponent * len(values)
        for value in values.tolist():  # a partial product can overflow or underflow if the product does not
            product, more = math.frexp(product * value)
            power += more
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(product, power))
    return 0.0 if degree > len(values) else float(np.inf)


def log_pseudo_det(a: ArrayLike, *, rtol: float | None = None) -> float:
    """Return the logarithm of the pseudo-determinant, without overflow or underflow.

    Parameters
    ----------
    a : array_like of shape (n, n)
        Symmetric matrix.
    rtol : float, optional
        Eigenvalues of at most ``rtol`` times the largest count as zero. Default: n times the machine epsilon.

    Returns
    -------
    float
        Sum of the logarithms of the non-zero eigenvalues.

    See Also
    --------
    optdesign.linalg.pseudo_det : Return the pseudo-determinant.

    Examples
    --------
    >>> round(log_pseudo_det(np.diag([1e-300, 1e-300, 0.0])), 3)
    -1381.551
    """
    values, _, exponent = _scaled_range(a, rtol)
    if np.any(values < 0):
        value = f"it has the eigenvalue {np.ldexp(values.min(), exponent):g}"
        raise InputError("a", "must be positive semi-definite", value, "If that is rounding, raise rtol.")
    return float(np.sum(np.log(values))) + len(values) * exponent * math.log(2)


def pseudo_inverse(a: ArrayLike, *, rtol: float | None = None) -> np.ndarray:
    """Return the Moore-Penrose inverse of a symmetric matrix.

    Parameters
    ----------
    a : array_like of shape (n, n)
        Symmetric matrix.
    rtol : float, optional
        Eigenvalues of at most ``rtol`` times the largest count as zero. Default: n times the machine epsilon.

    Returns
    -------
    ndarray of shape (n, n)
        Pseudo-inverse.

    See Also
    --------
    optdesign.linalg.rank_one_update : Update the pseudo-inverse.

    Examples
    --------
    >>> pseudo_inverse([[4.0, 0.0], [0.0, 0.0]]).tolist()
    [[0.25, 0.0], [0.0, 0.0]]
    """
    values, vectors, exponent = _scaled_range(a, rtol)
    smallest = np.ldexp(np.abs(values).min(initial=1.0), exponent)
    if len(values) and smallest < np.finfo(float).tiny:
        rule = "must have an inverse in the range of floating point"
        raise InputError("a", rule, f"it has an eigenvalue of size {smallest:g}", "Change the units.")
    return np.asarray(np.ldexp((vectors / values) @ vectors.T, -exponent))


def rank_one_update(a_pinv: ArrayLike, u: ArrayLike, scale: float) -> np.ndarray:
    """Return the pseudo-inverse of A + scale u u' from that of A (Lemma "low_rank_update").

    Parameters
    ----------
    a_pinv : array_like of shape (n, n)
        Pseudo-inverse of A.
    u : array_like of shape (n,)
        Vector in the range of A. A part outside of at most 1e-6 of its length counts as round-off.
    scale : float
        Factor. The range stays the same if ``det_ratio(a_pinv, u, scale)`` is positive. It must be between
        1e-12 and 1e12, because cancellation multiplies round-off by its inverse or by itself.

    Returns
    -------
    ndarray of shape (n, n)
        Pseudo-inverse of the sum.

    See Also
    --------
    optdesign.linalg.det_ratio : Return the ratio of the pseudo-determinants.
    optdesign.linalg.pseudo_inverse : Compute a pseudo-inverse.

    Examples
    --------
    >>> rank_one_update(np.eye(2), [1.0, 0.0], 1.0).tolist()
    [[0.5, 0.0], [0.0, 1.0]]
    """
    change = _update(a_pinv, u, scale)
    inverse, vector, ratio = change.inverse, change.vector, change.ratio
    _, basis = eigen_range(inverse)
    outside = np.linalg.norm(vector - basis @ (basis.T @ vector))
    # A rank-one update that leaves less than this fraction of the determinant loses the range, and one that
    # multiplies the determinant by more than the inverse leaves only round-off of the old pseudo-inverse.
    range_rtol = 1e-12
    if outside > np.sqrt(range_rtol) * np.linalg.norm(vector):
        value = f"{np.ldexp(outside, change.vector_exponent):g} of its length does not"
        remedy = "Outside the range the rank grows: compute the pseudo-inverse afresh."
        raise InputError("u", "must lie in the range of A", value, remedy)
    if not range_rtol < ratio < 1 / range_rtol:
        value = f"1 + scale u' A^+ u = {ratio:g} is not between {range_rtol:g} and {1 / range_rtol:g}"
        remedy = "Take less weight away from u, or compute the pseudo-inverse afresh."
        raise InputError("the update", "must preserve the range", value, remedy)
    v = inverse @ vector
    part = np.ldexp(change.scale / ratio * np.outer(v, v), change.power)
    return np.asarray(np.ldexp(inverse - part, change.inverse_exponent))


def det_ratio(a_pinv: ArrayLike, u: ArrayLike, scale: float) -> float:
    """Return Det(A + scale u u') / Det(A) = 1 + scale u' A^+ u.

    Parameters
    ----------
    a_pinv : array_like of shape (n, n)
        Pseudo-inverse of A.
    u : array_like of shape (n,)
        Vector in the range of A.
    scale : float
        Factor.

    Returns
    -------
    float
        Ratio of the pseudo-determinants.

    See Also
    --------
    optdesign.linalg.rank_one_update : Update the pseudo-inverse.

    Examples
    --------
    >>> det_ratio(np.eye(2), [2.0, 0.0], 0.25)
    2.0
    """
    return _update(a_pinv, u, scale).ratio


def _scaled(matrix: np.ndarray) -> tuple[np.ndarray, int]:
    """Return a matrix times the power of 2 that makes its largest entry 1/2 to 1, and the exponent."""
    if not np.all(np.isfinite(matrix)):
        raise InputError("a", "must be finite", "it has NaN or infinite entries", "Clean the data first.")
    exponent = int(np.frexp(np.abs(matrix).max(initial=0.0))[1])
    return np.ldexp(matrix, -exponent), exponent


def _scaled_range(a: ArrayLike, rtol: float | None) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the non-zero eigenvalues divided by a power of 2, eigenvectors, and the exponent of the power.

    The largest entry of the matrix that is divided so is 1/2 to 1 in size.
    """
    matrix = floats(a, "a")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError("a", "must be a square matrix", f"got shape {matrix.shape}", "Pass X' W X, not X.")
    matrix, exponent = _scaled(matrix)
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-8:
        raise InputError("a", "must be symmetric", "a differs from its transpose", "Pass (a + a.T) / 2.")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    keep = np.abs(values) > _tolerance(len(matrix), rtol) * np.abs(values).max(initial=0.0)
    return values[keep], vectors[:, keep], exponent


def _tolerance(size: int, rtol: float | None) -> float:
    """Return the relative tolerance of a rank decision, by default that of round-off."""
    if rtol is None:
        return size * float(np.finfo(float).eps)
    if not 0 <= rtol < 1:
        remedy = "Leave it out for round-off."
        raise InputError("rtol", "must be at least 0 and less than 1", f"got {rtol}", remedy)
    return rtol


class _Update(NamedTuple):
    """A rank-one update, in numbers that are divided by powers of 2 so that products do not overflow."""

    inverse: np.ndarray
    inverse_exponent: int
    vector: np.ndarray
    vector_exponent: int
    scale: float
    power: int
    """Exponent of the products of the three factors."""
    ratio: float
    """1 + scale u' A^+ u."""


def _update(a_pinv: ArrayLike, u: ArrayLike, scale: float) -> _Update:
    """Check and scale the arguments of a rank-one update."""
    inverse, vector = floats(a_pinv, "a_pinv"), floats(u, "u")
    if inverse.ndim != 2 or vector.shape * 2 != inverse.shape:
        rule = "must have an entry for each row of a_pinv, a square matrix"
        raise InputError("u", rule, f"got shapes {vector.shape} and {inverse.shape}", "Pass a vector.")
    if not (np.isfinite(vector).all() and np.isfinite(scale)):
        raise InputError("u and scale", "must be finite", remedy="Clean the data first.")
    inverse, a = _scaled(inverse)
    vector, b = _scaled(vector)
    size, c = math.frexp(scale)
    power = a + 2 * b + c
    with np.errstate(over="ignore", under="ignore"):
        ratio = float(1.0 + np.ldexp(size * (vector @ inverse @ vector), power))
    return _Update(inverse, a, vector, b, size, power, ratio)
