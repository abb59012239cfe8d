"""Designs of the same information in rational arithmetic: the truth for tests of sparsify."""

import math

import numpy as np
from flint import fmpq, fmpq_mat

ZERO = fmpq(0)


def rational(value):
    return fmpq(*float(value).as_integer_ratio())


def change(problem, given, other):
    """Largest change of the information relative to that of the given weights, over blocks (Frobenius)."""
    x, largest = np.asarray(problem.candidates, dtype=float), 0.0
    for b in range(problem.n_parameter_blocks):
        rows = np.flatnonzero(problem.parameter_blocks == b)
        whole = fmpq_mat(len(rows), x.shape[1], [rational(v) for n in rows for v in x[n]])
        reduced, rank = whole.rref()
        assert rank == problem.ranks[b]
        at = [next(j for j in range(x.shape[1]) if reduced[i, j] != 0) for i in range(rank)]

        def information(w, rows=rows, whole=whole, at=at):
            part = [[whole[i, j] for j in at] for i in range(len(rows))]
            left = fmpq_mat(len(rows), len(at), [v for row in part for v in row])
            scaled = [rational(w[n]) * v for n, row in zip(rows, part, strict=True) for v in row]
            return left.transpose() * fmpq_mat(len(rows), len(at), scaled)

        u, v = information(given), information(other)
        ratio = u.solve(v - u)
        square = ratio * ratio
        total = sum((square[i, i] for i in range(rank)), ZERO)
        largest = max(largest, math.sqrt(int(total.p) / int(total.q)))
    return largest


def equations(problem):
    """Information and budgets as linear functions of the weights: rows of full rank."""
    x, n = np.asarray(problem.candidates, dtype=float), problem.n_candidates
    exact = [[rational(v) for v in row] for row in x]
    rows = [
        [exact[k][i] * exact[k][j] if problem.parameter_blocks[k] == b else ZERO for k in range(n)]
        for b in range(problem.n_parameter_blocks)
        for i in range(x.shape[1])
        for j in range(i + 1)
    ]
    rows += [[fmpq(int(problem.groups[k] == i)) for k in range(n)] for i in range(problem.n_groups)]
    reduced, rank = fmpq_mat(len(rows), n, [v for row in rows for v in row]).rref()
    return [[reduced[i, k] for k in range(n)] for i in range(rank)]


def least_cost(problem, weights, cost):
    """The least cost of a design with the information and budgets of the weights.

    The simplex method with Bland's rule, in rational arithmetic, after steps to a vertex.
    """
    a, c = equations(problem), [rational(v) for v in cost]
    w, n, m = [rational(v) for v in weights], len(weights), len(a)
    while (z := _direction(a, [k for k in range(n) if w[k] > 0], n)) is not None:
        if not any(v < 0 for v in z):
            z = [-v for v in z]
        step = min(-w[k] / z[k] for k in range(n) if z[k] < 0)
        w = [w[k] + step * z[k] for k in range(n)]
    basis = [k for k in range(n) if w[k] > 0]
    for k in range(n):
        if len(basis) < m and k not in basis and _columns(a, [*basis, k]).rank() > len(basis):
            basis.append(k)
    while True:
        square = _columns(a, basis)
        dual = square.transpose().solve(fmpq_mat(m, 1, [c[k] for k in basis]))
        worth = (k for k in range(n) if sum((a[i][k] * dual[i, 0] for i in range(m)), ZERO) > c[k])
        entering = next(worth, None)
        if entering is None:
            total = sum((c[k] * w[k] for k in range(n)), ZERO)
            return int(total.p) / int(total.q)
        move = square.solve(_columns(a, [entering]))
        step, _, i = min((w[basis[i]] / move[i, 0], basis[i], i) for i in range(m) if move[i, 0] > 0)
        for j in range(m):
            w[basis[j]] -= step * move[j, 0]
        w[entering] += step
        basis[i] = entering


def _columns(a, which):
    return fmpq_mat(len(a), len(which), [row[k] for row in a for k in which])


def _direction(a, which, n):
    """A vector with a z = 0 that is zero outside some columns, or None."""
    reduced, rank = _columns(a, which).rref()
    if rank == len(which):
        return None
    at = [next(j for j in range(len(which)) if reduced[i, j] != 0) for i in range(rank)]
    free = next(j for j in range(len(which)) if j not in at)
    z = [ZERO] * n
    z[which[free]] = fmpq(1)
    for i, j in enumerate(at):
        z[which[j]] = -reduced[i, free]
    return z
