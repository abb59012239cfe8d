"""Per-block linear algebra in the coordinates of :mod:`optdesign.problem.span`, compiled.

Everything here takes coordinates t (N, r), the block of every row, and the rank of every block; only
the first ``ranks[b]`` columns of a row in block b count.
"""

import math
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf

from optdesign.runtime import threads
from optdesign.runtime.jit import kernel

SINGULAR_RTOL = 1e-14
"""A Cholesky pivot below this fraction of its diagonal entry means that the weights lose rank."""

WIDE = 32
"""Rank from which on products of matrices go through BLAS."""


def entries(ranks: Any) -> Any:
    """Return r (r + 1) / 2, the number of entries of a symmetric matrix, for one rank or several.

    >>> entries(3)
    6
    """
    return ranks * (ranks + 1) // 2


def cholesky(information: np.ndarray) -> np.ndarray | None:
    """Return the upper Cholesky factor of an upper triangle, or None if the weights lose rank."""
    factor, info = dpotrf(information, lower=0)
    if info or np.any(np.diag(factor) ** 2 <= SINGULAR_RTOL * np.diag(information)):
        return None
    return factor


def whiten(
    t: np.ndarray, weights: np.ndarray, fixed: np.ndarray, out: np.ndarray, rows: slice | np.ndarray
) -> bool:
    """Write L^-1 t_n into some rows of out, L L' = fixed + sum w t t'. Returns True if the rank is full."""
    scaled = np.sqrt(weights)[:, None] * t
    # A row-major lower triangle is a column-major upper one.
    information = dsyrk(1.0, scaled.T, lower=0, beta=1.0, c=fixed.T)
    factor = cholesky(information)
    if factor is None:
        return False
    out[rows, : t.shape[1]] = dtrsm(1.0, factor, t.T, lower=0, trans_a=1).T
    return True


def add_information(
    t: np.ndarray, blocks: np.ndarray, ranks: np.ndarray, weights: np.ndarray, information: np.ndarray
) -> None:
    """Add w_n t_n t_n' to the information of n's block, on several threads. Overwrites information.

    A piece takes at least as much memory as its sums.
    """

    def part(first: int, last: int) -> np.ndarray:
        own = np.zeros_like(information)
        accumulate(t[first:last], blocks[first:last], ranks, weights[first:last], own)
        return own

    piece = max(threads.PIECE, information.size) // t.shape[1]
    information += threads.summed(part, len(t), piece, information.size)


@kernel
def accumulate(t, blocks, ranks, weights, information):
    """Add w_n t_n t_n' to the information of n's block, lower triangle. Overwrites information."""
    for n in range(len(t)):
        w = weights[n]
        if w > 0.0:
            b = blocks[n]
            for i in range(ranks[b]):
                for j in range(i + 1):
                    information[b, i, j] += w * t[n, i] * t[n, j]


@kernel
def factorise(information, ranks, factor):
    """Overwrite the lower triangle of factor with L^-1 of every block, where information = L L'.

    Reads the lower triangle of information. Returns log det of every block; a block that loses rank has
    -inf and an unusable factor. Loops run along rows: the strict upper triangle of factor holds L' on the
    way.
    """
    log_det = np.zeros(len(ranks))
    for b in range(len(ranks)):
        r = ranks[b]
        a = factor[b]
        for i in range(r):
            for j in range(i, r):
                a[i, j] = information[b, j, i]
        for k in range(r):
            pivot = a[k, k]
            if not pivot > SINGULAR_RTOL * information[b, k, k]:
                log_det[b] = -np.inf
                break
            log_det[b] += math.log(pivot)
            inverse = 1.0 / np.sqrt(pivot)
            a[k, k] = inverse
            for j in range(k + 1, r):
                a[k, j] *= inverse
            for i in range(k + 1, r):
                c = a[k, i]
                for j in range(i, r):
                    a[i, j] -= c * a[k, j]
        if log_det[b] == -np.inf:
            continue
        for i in range(r):
            for j in range(i):
                a[i, j] = 0.0
            for k in range(i):
                c = a[k, i]
                for j in range(k + 1):
                    a[i, j] -= c * a[k, j]
            for j in range(i):
                a[i, j] *= a[i, i]
    return log_det


@kernel
def invert(factor, ranks, inverse):
    """Overwrite inverse with V = L^-T L^-1 of every block."""
    for b in range(len(ranks)):
        r = ranks[b]
        v = inverse[b]
        for i in range(r):
            for j in range(i + 1):
                v[i, j] = 0.0
        for k in range(r):
            for i in range(k + 1):
                c = factor[b, k, i]
                for j in range(i + 1):
                    v[i, j] += c * factor[b, k, j]
        for i in range(r):
            for j in range(i):
                v[j, i] = v[i, j]


@kernel
def multiply(v, x, y):
    """Overwrite y with V x. Returns x'V x. The length of y is the rank."""
    square = 0.0
    for i in range(len(y)):
        y[i] = 0.0
        for j in range(len(y)):
            y[i] += v[i, j] * x[j]
        square += y[i] * x[i]
    return square


@kernel
def add_outer(v, y, scale):
    """Add scale y y' to V: with y = V x, the rank-one update of an inverse. Updates V in place."""
    for i in range(len(y)):
        c = scale * y[i]
        for j in range(len(y)):
            v[i, j] += c * y[j]


@kernel
def variance(factor, b, t, n, rank):
    """Return g_n = |L^-1 t_n|^2, in block b."""
    g = 0.0
    for i in range(rank):
        s = 0.0
        for k in range(i + 1):
            s += factor[b, i, k] * t[n, k]
        g += s * s
    return g
