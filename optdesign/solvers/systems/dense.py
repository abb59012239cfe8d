"""Dense factors by LAPACK, in pieces between which limits and interrupts are checked.

Matrices are symmetric, row-major, and only their lower triangles are read and written. A row-major lower
triangle is a column-major upper one, so LAPACK works in place and nothing is copied.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from optdesign.runtime import threads
from optdesign.solvers.method import ROUNDOFF

Attempt = Generator[None, None, bool]
"""Work that yields between two pieces and returns True if it succeeded."""

Solution = Generator[None, None, tuple[np.ndarray, np.ndarray]]
"""Work that yields between two pieces and returns du and dlambda."""

RIDGES = tuple(ROUNDOFF ** (1 / k) for k in range(1, 9))
"""Relative ridges that are tried in turn on matrices that are positive definite up to round-off."""

PIECE = math.isqrt(threads.PIECE)
"""Columns that are eliminated, or rows that are multiplied, between two checks of limits and interrupts."""


def cholesky(matrix: np.ndarray) -> Attempt:
    """Overwrite the lower triangle of a matrix with its factor L. Returns False if there is none.

    Long factorisations yield between two pieces.
    """
    n = len(matrix)
    if n <= 2 * PIECE:
        return _cholesky(matrix)
    for k in range(0, n, PIECE):
        end = min(k + PIECE, n)
        corner = np.ascontiguousarray(matrix[k:end, k:end])
        if not _cholesky(corner):
            return False
        matrix[k:end, k:end] = corner
        panel = np.ascontiguousarray(matrix[end:, k:end])
        if len(panel):
            # L_21 = A_21 L_11^-T, that is L_21' = (upper corner)^-T A_21' in column-major words
            dtrsm(1.0, corner.T, panel.T, lower=0, trans_a=1, overwrite_b=1)
            matrix[end:, k:end] = panel
        for j in range(end, n, PIECE):
            part = panel[j - end : j - end + PIECE]
            matrix[j : j + PIECE, end : j + PIECE] -= part @ panel[: j - end + PIECE].T
            yield
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


def add_square(matrix: np.ndarray, rows: np.ndarray, scale: float = 1.0) -> Iterator[None]:
    """Add scale R'R of row-major rows R to the lower triangle of a matrix. Overwrites matrix."""
    n = len(matrix)
    if rows.size == 0:
        return
    if matrix.flags.c_contiguous and n <= 2 * PIECE:
        for k in range(0, len(rows), 4 * PIECE):
            dsyrk(scale, rows[k : k + 4 * PIECE].T, beta=1.0, c=matrix.T, overwrite_c=1, lower=0)
            yield
        return
    for j in range(0, n, PIECE):
        part = rows[:, j : j + PIECE]
        matrix[j : j + PIECE, : j + PIECE] += scale * (part.T @ rows[:, : j + PIECE])
        yield
