"""Per-block linear algebra in the coordinates of :mod:`optdesign.span`, compiled.

Everything here takes coordinates t (N, r), the block of every row, and the rank of every block; only
the first ``ranks[b]`` columns of a row in block b count.
"""

import numpy as np

from optdesign._kernel import kernel

SINGULAR_RTOL = 1e-14
"""A Cholesky pivot below this fraction of its diagonal entry means that the weights lose rank."""


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
    """Overwrite factor with L^-1 of every block, where information = L L'.

    Reads the lower triangle of information. Returns the sum of log det and a flag per block; a block
    that loses rank is flagged False, makes the sum -inf, and leaves an unusable factor.
    """
    full = np.ones(len(ranks), np.bool_)
    log_det = 0.0
    for b in range(len(ranks)):
        r = ranks[b]
        a = factor[b]
        for i in range(r):
            for j in range(i + 1):
                s = information[b, i, j]
                for k in range(j):
                    s -= a[i, k] * a[j, k]
                if i > j:
                    a[i, j] = s / a[j, j]
                elif s > SINGULAR_RTOL * information[b, i, i]:
                    a[i, i] = np.sqrt(s)
                else:
                    full[b] = False
                    a[i, i] = 1.0
        if not full[b]:
            log_det = -np.inf
            continue
        for i in range(r):
            log_det += 2.0 * np.log(a[i, i])
        for j in range(r):  # L is inverted in place, column by column
            a[j, j] = 1.0 / a[j, j]
            for i in range(j + 1, r):
                s = 0.0
                for k in range(j, i):
                    s -= a[i, k] * a[k, j]
                a[i, j] = s / a[i, i]
    return log_det, full


@kernel
def invert(factor, ranks, inverse):
    """Overwrite inverse with V = L^-T L^-1 of every block."""
    for b in range(len(ranks)):
        r = ranks[b]
        for i in range(r):
            for j in range(i + 1):
                s = 0.0
                for k in range(i, r):
                    s += factor[b, k, i] * factor[b, k, j]
                inverse[b, i, j] = s
                inverse[b, j, i] = s


@kernel
def variances(t, blocks, ranks, factor, out):
    """Overwrite out with g_n = |L^-1 t_n|^2."""
    for n in range(len(t)):
        b = blocks[n]
        g = 0.0
        for i in range(ranks[b]):
            s = 0.0
            for k in range(i + 1):
                s += factor[b, i, k] * t[n, k]
            g += s * s
        out[n] = g
