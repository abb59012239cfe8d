"""The arithmetic of a Newton step (:mod:`optdesign.solvers.newton`), compiled: what surrounds the linear
system, and where that is small all of it at once.

In one call the system is solved by candidates, block by block, with a Schur complement over groups, as in
:mod:`optdesign.solvers.systems.by_group`, or as in :mod:`optdesign.solvers.systems.by_information`. It is for
systems that take less time in loops than by LAPACK with the calls of a step in parts
(:data:`optdesign.solvers.costs.IN_PARTS`).
"""

from __future__ import annotations

import numpy as np

from optdesign.algebra.blocks import accumulate, factorise, invert
from optdesign.runtime.jit import kernel
from optdesign.solvers.systems.by_group import add_blocks_up, solve_blocks, write_blocks
from optdesign.solvers.systems.by_information import add_groups, add_square, centred
from optdesign.solvers.systems.dense import RIDGES
from optdesign.solvers.systems.pivots import pivots


@kernel
def step_at_once(z, blocks, starts, ranks, fixed, offsets, least, most, u, s, bound, a, g):
    """Factorise, predict, correct, move, evaluate. Overwrites u and what follows it.

    A step goes at least and at most so much of the way to the boundary. The system is solved by information,
    given where the entries of blocks begin; by candidates, given None.
    Returns the gap, infinite if there is no step.
    """
    w, du, dbound, centre = np.empty(len(u)), np.empty(len(u)), np.empty(len(bound)), np.empty(len(u))
    for k in range(len(u)):
        w[k] = u[k] / s[k]
    r = residual(starts, bound, g)
    if offsets is None:
        found, factor, rows, first, schur, group = _by_candidates(a, w, blocks, starts, ranks)
        if not found:
            return np.inf
        _solve_by_candidates(factor, rows, first, schur, group, r, du, dbound)
    else:
        found, matrix, total, pivot = _by_information(a, w, blocks, starts, ranks, offsets)
        if not found:
            return np.inf
        places = (a, w, total, pivot, starts, blocks, ranks, offsets)
        _solve_by_information(matrix, places, r, du, dbound)
    left = centring(u, s, du, centre)
    for k in range(len(u)):
        r[k] += centre[k]
    if offsets is None:
        _solve_by_candidates(factor, rows, first, schur, group, r, du, dbound)
    else:
        _solve_by_information(matrix, places, r, du, dbound)
    move(starts, u, s, bound, du, dbound, centre, reached(left, least, most))
    return evaluate(z, blocks, starts, ranks, fixed, u, a, g)


@kernel
def _by_candidates(a, w, blocks, starts, ranks):
    """Whether there are factors, those of every block, the rows block by block, where those of each begin,
    the factor of the Schur complement, and the group of every row.
    """
    n, m = len(a), len(starts) - 1
    rows, first, group = np.empty(n, np.int64), np.zeros(len(ranks) + 1, np.int64), np.empty(n, np.int64)
    largest = _block_by_block(blocks, starts, first, rows, group)
    sizes, of_rows = np.empty(len(ranks), np.int64), np.empty(n, np.int64)
    for b in range(len(ranks)):
        sizes[b] = first[b + 1] - first[b]
    for k in range(n):
        of_rows[k] = group[rows[k]]
    matrix, factor = np.zeros((len(ranks), largest, largest)), np.zeros((len(ranks), largest, largest))
    schur = np.zeros((m, m))
    found = False
    for ridge in RIDGES:
        write_blocks(a, w, rows, first, ranks, 1.0 + ridge, matrix)
        log_det = factorise(matrix, sizes, factor)
        found = True
        for b in range(len(ranks)):
            found &= log_det[b] > -np.inf
        if not found:
            continue
        invert(factor, sizes, matrix)
        for i in range(m):
            for j in range(m):
                schur[i, j] = 0.0
        add_blocks_up(matrix, of_rows, first, schur)
        for i in range(m):
            schur[i, i] *= 1.0 + ridge
        found = _cholesky(schur)
        if found:
            break
    return found, factor, rows, first, schur, group


@kernel
def _by_information(a, w, blocks, starts, ranks, offsets):
    """Whether there is a factor, the factor, and of every group the sum of w and the pivot."""
    m, order = len(starts) - 1, offsets[-1]
    total = np.empty(m)
    pivot = pivots(w, starts, total)
    matrix, sums = np.empty((order, order)), np.empty((m, order))
    found = False
    for ridge in RIDGES:
        for i in range(order):
            for j in range(order):
                matrix[i, j] = 0.0
        for i in range(m):
            for j in range(order):
                sums[i, j] = 0.0
        left = add_groups(a, w, total, pivot, starts, blocks, ranks, offsets, 0, m, len(a), matrix, sums)
        for i in range(left):
            add_square(matrix, -1.0, sums[i])
        for i in range(order):
            matrix[i, i] = (matrix[i, i] + 1.0) * (1.0 + ridge)
        found = _cholesky(matrix)
        if found:
            break
    return found, matrix, total, pivot


@kernel
def _block_by_block(blocks, starts, first, rows, group):
    """Overwrite rows with all rows block by block, first, given as zeros, with where those of each begin, and
    group with the group of every row. Returns how many the largest block has.
    """
    for k in range(len(blocks)):
        first[blocks[k] + 1] += 1
    largest = 0
    for b in range(len(first) - 1):
        largest = max(largest, first[b + 1])
        first[b + 1] += first[b]
    at = first.copy()
    for i in range(len(starts) - 1):
        for k in range(starts[i], starts[i + 1]):
            group[k] = i
            rows[at[blocks[k]]] = k
            at[blocks[k]] += 1
    return largest


@kernel
def _solve_by_candidates(factor, rows, first, schur, group, r, du, dbound):
    """Overwrite du and dbound with the solution, given the factors of blocks and of the Schur complement."""
    t = np.empty(len(r))
    solve_blocks(factor, rows, first, r, t)
    for i in range(len(dbound)):
        dbound[i] = 0.0
    for k in range(len(t)):
        dbound[group[k]] += t[k]
    _solve_triangles(schur, dbound)
    for k in range(len(t)):
        t[k] = r[k] - dbound[group[k]]
    solve_blocks(factor, rows, first, t, du)


@kernel
def _solve_by_information(matrix, places, r, du, dbound):
    """Overwrite du and dbound with the solution, given the factor of I + M, and what M was made of."""
    y = np.zeros(len(matrix))
    centred(*places, 0, len(dbound), r, y, False, du, dbound)
    _solve_triangles(matrix, y)
    centred(*places, 0, len(dbound), r, y, True, du, dbound)


@kernel
def _solve_triangles(upper, x):
    """Overwrite x with the solution for it, given what _cholesky makes of a matrix."""
    for i in range(len(x)):
        x[i] *= upper[i, i]
        for j in range(i + 1, len(x)):
            x[j] -= upper[i, j] * x[i]
    for i in range(len(x) - 1, -1, -1):
        for j in range(i + 1, len(x)):
            x[i] -= upper[i, j] * x[j]
        x[i] *= upper[i, i]


@kernel
def _cholesky(matrix):
    """Overwrite the upper triangle of a matrix, of which the lower is read, with L' of its factor L; on the
    diagonal are inverses. Returns whether it exists.
    """
    for i in range(len(matrix)):
        for j in range(i):
            matrix[j, i] = matrix[i, j]
    for k in range(len(matrix)):
        if not matrix[k, k] > 0.0:
            return False
        inverse = 1.0 / np.sqrt(matrix[k, k])
        matrix[k, k] = inverse
        for j in range(k + 1, len(matrix)):
            matrix[k, j] *= inverse
        for i in range(k + 1, len(matrix)):
            c = matrix[k, i]
            for j in range(i, len(matrix)):
                matrix[i, j] -= c * matrix[k, j]
    return True


@kernel
def whiten_rows(z, blocks, ranks, factor, a, g):
    """Overwrite a with L^-1 z_n and g with its square, given L^-1 of every block."""
    for n in range(len(z)):
        b = blocks[n]
        g[n] = 0.0
        a[n] = 0.0
        for k in range(ranks[b]):
            t = 0.0
            for j in range(k + 1):
                t += factor[b, k, j] * z[n, j]
            a[n, k] = t
            g[n] += t * t


@kernel
def evaluate(z, blocks, starts, ranks, fixed, u, a, g):
    """Overwrite a with the rows whitened at u, g with their variances; the gap, inf without rank."""
    information, factor = fixed.copy(), np.zeros(fixed.shape)
    accumulate(z, blocks, ranks, u, information)
    log_det = factorise(information, ranks, factor)
    for b in range(len(ranks)):
        if log_det[b] == -np.inf:
            return np.inf
    whiten_rows(z, blocks, ranks, factor, a, g)
    return gap_of(starts, u, g)


@kernel
def _reach(x, dx):
    """Largest step up to 1 that keeps x + step dx >= 0."""
    worst = 1.0
    for n in range(len(x)):
        worst = max(worst, -dx[n] / x[n])
    return 1.0 / worst


@kernel
def centring(u, s, du, centre):
    """Overwrite centre with Mehrotra's choice after the predictor du: (sigma mu - du ds) / u, where
    ds = -s (1 + du / u). Returns which fraction of the products u s the predictor would leave.
    """
    n = len(u)
    least, most = 0.0, 0.0
    for i in range(n):
        centre[i] = du[i] / u[i]  # on the way
        least, most = min(least, centre[i]), max(most, centre[i])
    primal, dual = 1.0 / max(1.0, -least), 1.0 / (1.0 + most)
    mu, affine = 0.0, 0.0
    for i in range(n):
        mu += u[i] * s[i]
        affine += (u[i] + primal * du[i]) * s[i] * (1.0 - dual * (1.0 + centre[i]))
    ratio = affine / mu
    aim = mu / n * (ratio * ratio * ratio)
    for i in range(n):
        centre[i] = (aim + du[i] * s[i] * (1.0 + centre[i])) / u[i]
    return ratio


@kernel
def reached(left, least, most):
    """Which part of the way to the boundary is gone: all but what the predictor would leave of the products u
    s, which goes to zero with them, within bounds.
    """
    return max(least, min(most, 1.0 - left))


@kernel
def move(starts, u, s, bound, du, dbound, centre, fraction):
    """Move shares, and slacks with bounds, by a fraction of the way to zero; shares sum to one again.

    Slacks change by ds, with which u s comes to centre u, to first order. Overwrites u, s and bound.
    """
    ds = np.empty(len(u))
    for n in range(len(u)):
        ds[n] = centre[n] - s[n] - s[n] / u[n] * du[n]
    primal, dual = fraction * _reach(u, du), fraction * _reach(s, ds)
    for i in range(len(bound)):
        bound[i] += dual * dbound[i]
        total = 0.0
        for n in range(starts[i], starts[i + 1]):
            u[n] += primal * du[n]
            s[n] += dual * ds[n]
            total += u[n]
        for n in range(starts[i], starts[i + 1]):
            u[n] /= total


@kernel
def gap_of(starts, u, g):
    """sum_i sum_n u_n (max g - g_n), in which D does not cancel."""
    gap = 0.0
    for i in range(len(starts) - 1):
        top = 0.0
        for n in range(starts[i], starts[i + 1]):
            top = max(top, g[n])
        for n in range(starts[i], starts[i + 1]):
            gap += u[n] * (top - g[n])
    return gap


@kernel
def residual(starts, bound, g):
    """g_n - lambda_i."""
    out = g.copy()
    for i in range(len(bound)):
        for n in range(starts[i], starts[i + 1]):
            out[n] -= bound[i]
    return out
