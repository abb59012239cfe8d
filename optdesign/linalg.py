"""Pseudo-determinants and pseudo-inverses of symmetric positive semi-definite matrices.

The pseudo-determinant of degree s of an n x n matrix is  Det_s(A) = lim det(A + eps I) / eps^(n - s)  as eps
-> 0: the product of the non-zero eigenvalues if s = rank(A), zero if s > rank(A), infinite if s < rank(A).
Solvers work in the range of each block (:mod:`optdesign.problem.span`) and need none of this; the functions
are here for checking them, and for users whose matrices come without such a basis.

Eigenvalues of magnitude at most ``rtol`` times the largest count as zero; the default is n times the
machine epsilon.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import orth, pinvh

RANGE_RTOL = 1e-12
"""A rank-one update that leaves less than this fraction of the determinant loses the range."""


def eigen_range(a: ArrayLike, rtol: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Non-zero eigenvalues of a symmetric matrix, and orthonormal eigenvectors as columns.

    >>> values, vectors = eigen_range([[2.0, 0.0], [0.0, 0.0]])
    >>> values.tolist(), vectors.shape
    ([2.0], (2, 1))
    """
    matrix = _symmetric(a)
    values, vectors = np.linalg.eigh(matrix)
    tolerance = len(matrix) * np.finfo(float).eps if rtol is None else rtol
    keep = np.abs(values) > tolerance * np.abs(values).max(initial=0.0)
    return values[keep], vectors[:, keep]


def range_basis(a: ArrayLike, rtol: float | None = None) -> np.ndarray:
    """Orthonormal basis of the column space of any matrix, shape (n, rank).

    Singular values of at most ``rtol`` times the largest count as zero; the default is the larger
    dimension times the machine epsilon.

    >>> range_basis([[3.0, 6.0], [0.0, 0.0]]).shape
    (2, 1)
    """
    matrix = _finite(a)
    if matrix.ndim != 2:
        raise ValueError(f"a must be a matrix; got shape {matrix.shape}. Put one vector a column.")
    return orth(matrix, rcond=rtol)


def pseudo_det(a: ArrayLike, degree: int | None = None, *, rtol: float | None = None) -> float:
    """Pseudo-determinant of a given degree, by default the rank.

    >>> a = [[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]]
    >>> round(pseudo_det(a), 12), pseudo_det(a, 3), pseudo_det(a, 1)
    (6.0, 0.0, inf)
    """
    values, _ = eigen_range(a, rtol)
    n = len(np.asarray(a))
    if degree is not None and not (isinstance(degree, Integral) and 0 <= degree <= n):
        raise ValueError(
            f"degree must be an integer between 0 and {n}; got {degree}. Leave it out for the rank."
        )
    if degree is None or degree == len(values):
        return float(np.prod(values))
    return 0.0 if degree > len(values) else float(np.inf)


def log_pseudo_det(a: ArrayLike, *, rtol: float | None = None) -> float:
    """Logarithm of the pseudo-determinant; it neither overflows nor underflows.

    >>> round(log_pseudo_det(np.diag([1e-300, 1e-300, 0.0])), 3)
    -1381.551
    """
    values, _ = eigen_range(a, rtol)
    if np.any(values < 0):
        raise ValueError(
            f"a must be positive semi-definite; it has the eigenvalue {values.min():g}. "
            "If that is rounding, raise rtol."
        )
    return float(np.sum(np.log(values)))


def pseudo_inverse(a: ArrayLike, *, rtol: float | None = None) -> np.ndarray:
    """Moore-Penrose inverse of a symmetric matrix.

    >>> pseudo_inverse([[4.0, 0.0], [0.0, 0.0]]).tolist()
    [[0.25, 0.0], [0.0, 0.0]]
    """
    return pinvh(_symmetric(a), rtol=rtol)


def rank_one_update(a_pinv: ArrayLike, u: ArrayLike, scale: float) -> np.ndarray:
    """Pseudo-inverse of A + scale u u' from that of A, for u in the range of A (Lemma "low_rank_update").

    The range must stay the same, so ``det_ratio(a_pinv, u, scale)`` must be positive (above
    ``RANGE_RTOL``, since it is a difference of numbers near one where a direction is taken away).

    >>> rank_one_update(np.eye(2), [1.0, 0.0], 1.0).tolist()
    [[0.5, 0.0], [0.0, 1.0]]
    """
    inverse, vector = np.asarray(a_pinv, dtype=np.float64), np.asarray(u, dtype=np.float64)
    _, basis = eigen_range(inverse)
    outside = float(np.linalg.norm(vector - basis @ (basis.T @ vector)))
    if outside > np.sqrt(RANGE_RTOL) * np.linalg.norm(vector):
        raise ValueError(
            f"u must lie in the range of A; {outside:g} of its length does not. Outside the range the rank "
            "grows: compute the pseudo-inverse afresh."
        )
    ratio = det_ratio(inverse, u, scale)
    if not ratio > RANGE_RTOL:
        raise ValueError(
            f"the update must preserve the range; 1 + scale u' A^+ u = {ratio:g} is not positive, or too "
            "small to tell from rounding. "
            "Take less weight away from u."
        )
    v = inverse @ vector
    return inverse - (scale / ratio) * np.outer(v, v)


def det_ratio(a_pinv: ArrayLike, u: ArrayLike, scale: float) -> float:
    """Det(A + scale u u') / Det(A) = 1 + scale u' A^+ u, for u in the range of A.

    >>> det_ratio(np.eye(2), [2.0, 0.0], 0.25)
    2.0
    """
    vector = np.asarray(u, dtype=np.float64)
    return float(1.0 + scale * (vector @ np.asarray(a_pinv, dtype=np.float64) @ vector))


def _finite(a: ArrayLike) -> np.ndarray:
    """Return an array of doubles. Raise ValueError unless all are finite."""
    array = np.asarray(a, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        raise ValueError("a must be finite; it has NaN or infinite entries. Clean the data first.")
    return array


def _symmetric(a: ArrayLike) -> np.ndarray:
    """Return the symmetric part of a matrix. Raise ValueError if the rest is more than round-off."""
    matrix = _finite(a)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"a must be a square matrix; got shape {matrix.shape}. Pass X' W X, not X.")
    size = np.abs(matrix).max(initial=0.0)
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-8 * size:
        raise ValueError("a must be symmetric; a differs from its transpose. Pass (a + a.T) / 2.")
    return (matrix + matrix.T) / 2
