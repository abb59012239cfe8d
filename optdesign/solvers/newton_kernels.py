"""The arithmetic of a Newton step (:mod:`optdesign.solvers.newton`) around its linear system.

For small systems :func:`step_in_one_call` does the whole step in one compiled call. It solves the system by
candidates, block by block, with a Schur complement over groups, as :mod:`optdesign.solvers.systems.by_group`
does. It is chosen if the loops take less time than LAPACK and the calls of a step in parts.
"""

from __future__ import annotations

import numpy as np

from optdesign.algebra.blocks import accumulate, factorise, invert
from optdesign.problem.coordinates import sort_by_block
from optdesign.runtime.jit import kernel
from optdesign.solvers.systems.by_group import add_by_group
from optdesign.solvers.systems.dense import RIDGES


@kernel
def step_in_one_call(z, blocks, starts, ranks, fixed, least, most, u, s, bound, a, g):
    """Factorise, predict, correct, move, evaluate. Overwrites u, s, bound, a and g.

    The step goes a fraction between ``least`` and ``most`` of the way to the boundary. Returns the gap,
    infinite if the system is singular.
    """
    w, du, dbound, centre = np.empty(len(u)), np.empty(len(u)), np.empty(len(bound)), np.empty(len(u))
    for k in range(len(u)):
        w[k] = u[k] / s[k]
    found, factor, rows, first, schur_factor, group = _factorise_system(a, w, blocks, starts, ranks)
    if not found:
        return np.inf
    r = residual(starts, bound, g)
    _solve_system(factor, rows, first, schur_factor, group, r, du, dbound)
    remaining = centring(u, s, du, centre)
    for k in range(len(u)):
        r[k] += centre[k]
    _solve_system(factor, rows, first, schur_factor, group, r, du, dbound)
    move(starts, u, s, bound, du, dbound, centre, step_fraction(remaining, least, most))
    return evaluate_in_one_call(z, blocks, starts, ranks, fixed, u, a, g)


@kernel
def _factorise_system(a, w, blocks, starts, ranks):
    """Factorise the system by candidates.

    Returns True if there are factors, the inverse factors of all blocks, the rows block by block, the first
    row of each block, the inverse factor of the Schur complement, and the group of every row.
    """
    n, m = len(a), len(starts) - 1
    rows, first, group = np.empty(n, np.int64), np.empty(len(ranks) + 1, np.int64), np.empty(n, np.int64)
    sort_by_block(blocks, 0, n, first, rows)
    for i in range(m):
        for k in range(starts[i], starts[i + 1]):
            group[k] = i
    sizes, of_rows, largest = np.empty(len(ranks), np.int64), np.empty(n, np.int64), 0
    for b in range(len(ranks)):
        sizes[b] = first[b + 1] - first[b]
        largest = max(largest, sizes[b])
    for k in range(n):
        of_rows[k] = group[rows[k]]
    matrix, factor = np.zeros((len(ranks), largest, largest)), np.zeros((len(ranks), largest, largest))
    schur, schur_factor, order = np.zeros((1, m, m)), np.zeros((1, m, m)), np.full(1, m)
    found = False
    for ridge in RIDGES:
        _write_blocks(a, w, rows, first, ranks, 1.0 + ridge, matrix)
        log_det = factorise(matrix, sizes, factor)
        found = True
        for b in range(len(ranks)):
            found &= log_det[b] > -np.inf
        if not found:
            continue
        invert(factor, sizes, matrix)
        schur[0] = 0.0
        for b in range(len(ranks)):
            add_by_group(matrix[b], of_rows[first[b] : first[b + 1]], schur[0])
        for i in range(m):
            schur[0, i, i] *= 1.0 + ridge
        found = factorise(schur, order, schur_factor)[0] > -np.inf
        if found:
            break
    return found, factor, rows, first, schur_factor, group


@kernel
def _solve_system(factor, rows, first, schur_factor, group, r, du, dbound):
    """Overwrite du and dbound with the solution, given L^-1 of every block and of the Schur complement."""
    m = len(dbound)
    t, sums = np.empty(len(r)), np.zeros(m)
    _solve_blocks(factor, rows, first, r, t)
    for k in range(len(t)):
        sums[group[k]] += t[k]
    _solve_blocks(schur_factor, np.arange(m), np.array([0, m]), sums, dbound)
    for k in range(len(t)):
        t[k] = r[k] - dbound[group[k]]
    _solve_blocks(factor, rows, first, t, du)


@kernel
def _write_blocks(a, w, rows, starts, ranks, scale, matrix):
    """Overwrite the lower triangles of a stack of matrices with the blocks of H + W^-1.

    The diagonal of H is multiplied by scale.
    """
    for b in range(len(ranks)):
        lo = starts[b]
        for i in range(starts[b + 1] - lo):
            n = rows[lo + i]
            for j in range(i + 1):
                t = 0.0
                for k in range(ranks[b]):
                    t += a[n, k] * a[rows[lo + j], k]
                matrix[b, i, j] = t * t
            matrix[b, i, i] = scale * matrix[b, i, i] + 1.0 / w[n]


@kernel
def _solve_blocks(factor, rows, starts, r, t):
    """Overwrite t with the solutions for r, given L^-1 of every block."""
    for b in range(len(factor)):
        lo, size = starts[b], starts[b + 1] - starts[b]
        for i in range(size):
            t[rows[lo + i]] = 0.0
        for i in range(size):
            y = 0.0
            for j in range(i + 1):
                y += factor[b, i, j] * r[rows[lo + j]]
            for j in range(i + 1):
                t[rows[lo + j]] += factor[b, i, j] * y


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
def evaluate_in_one_call(z, blocks, starts, ranks, fixed, u, a, g):
    """Overwrite a with the rows whitened at u, g with their variances. Returns the gap, inf without rank."""
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
    """Return the largest step up to 1 that keeps x + step dx >= 0."""
    worst = 1.0
    for n in range(len(x)):
        worst = max(worst, -dx[n] / x[n])
    return 1.0 / worst


@kernel
def centring(u, s, du, centre):
    """Overwrite centre with Mehrotra's choice after the predictor du.

    It is (sigma mu - du ds) / u with ds = -s (1 + du / u). Returns the fraction of the products u s that the
    predictor would leave.
    """
    n = len(u)
    least, most = 0.0, 0.0
    for i in range(n):
        centre[i] = du[i] / u[i]  # overwritten below
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
def step_fraction(remaining, least, most):
    """Return the fraction of the way to the boundary that a step goes.

    It leaves the fraction of the products u s that the predictor would leave, within bounds.
    """
    return max(least, min(most, 1.0 - remaining))


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
    """Return the gap as sum_i sum_n u_n (max g - g_n), in which D does not cancel."""
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
    """Return g_n - lambda_i."""
    out = g.copy()
    for i in range(len(bound)):
        for n in range(starts[i], starts[i + 1]):
            out[n] -= bound[i]
    return out
