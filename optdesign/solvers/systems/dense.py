"""Dense factors by LAPACK, in pieces between which a pending stop is raised.

Matrices are symmetric, row-major, and only their lower triangles are read and written. A row-major lower
triangle is a column-major upper one, so LAPACK works in place and nothing is copied.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from optdesign.numbers.roundoff import ROUNDOFF
from optdesign.runtime import threads
from optdesign.runtime.stopping import raise_if_stopped

RIDGES = tuple(ROUNDOFF ** (1 / k) for k in range(1, 9))
"""Relative ridges that are tried in turn on matrices that are positive definite up to round-off."""

PIECE_COLUMNS = math.isqrt(threads.PIECE)
"""Columns that are eliminated between two checks of a pending stop."""


def cholesky(matrix: np.ndarray) -> bool:
    """Overwrite the lower triangle of a matrix with its factor L. Returns False if there is none."""
    n = len(matrix)
    if n <= 2 * PIECE_COLUMNS:
        return _cholesky(matrix)
    for k in range(0, n, PIECE_COLUMNS):
        end = min(k + PIECE_COLUMNS, n)
        corner = np.ascontiguousarray(matrix[k:end, k:end])
        if not _cholesky(corner):
            return False
        matrix[k:end, k:end] = corner
        panel = np.ascontiguousarray(matrix[end:, k:end])
        if len(panel):
            # L_21 = A_21 L_11^-T, that is L_21' = (upper corner)^-T A_21' in column-major words
            dtrsm(1.0, corner.T, panel.T, lower=0, trans_a=1, overwrite_b=1)
            matrix[end:, k:end] = panel
        for j in range(end, n, PIECE_COLUMNS):
            raise_if_stopped()
            part = panel[j - end : j - end + PIECE_COLUMNS]
            matrix[j : j + PIECE_COLUMNS, end : j + PIECE_COLUMNS] -= (
                part @ panel[: j - end + PIECE_COLUMNS].T
            )
    return True


def _cholesky(matrix: np.ndarray) -> bool:
    """Overwrite the lower triangle of a small matrix with its factor. Returns False if there is none."""
    _, info = dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)
    return info == 0


def solve(factor: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the solution of L L' x = b."""
    return dpotrs(factor.T, b, lower=0)[0]


def inverse(factor: np.ndarray) -> None:
    """Overwrite the lower triangle of a factor L with that of (L L')^-1."""
    dpotri(factor.T, lower=0, overwrite_c=1)


def subtract_square(matrix: np.ndarray, rows: np.ndarray) -> None:
    """Subtract R'R of row-major rows R from the lower triangle of a matrix. Overwrites matrix."""
    some = max(1, PIECE_COLUMNS**3 // len(matrix) ** 2)
    for k in range(0, len(rows), some):
        raise_if_stopped()
        dsyrk(-1.0, rows[k : k + some].T, beta=1.0, c=matrix.T, overwrite_c=1, lower=0)
