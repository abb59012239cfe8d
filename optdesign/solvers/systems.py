"""The linear system of a Newton step, and two ways to solve it.

In whitened coordinates a_n = L^-1 z_n the Hessian of -F is H_nm = (a_n' a_m)^2 within a block, so with
W = diag(u / s) and A the group sums a step of :mod:`optdesign.solvers.newton` solves

    (H + W^-1) du + A' dlambda = r,    A du = 0.                                            (1)

*By group.* H + W^-1 is block diagonal over blocks: factorise each, then the n_groups x n_groups Schur
complement A (H + W^-1)^-1 A'.

*By information.* H = Phi Phi' with phi_n = svec(a_n a_n'), Q = sum_b r_b (r_b + 1) / 2 columns. In each group
the candidate p of largest W is eliminated through du_p = -sum of the others. With psi_n = phi_n - phi_p, the
unknown y = Phi' du solves (I + M) y = rhs, where

    M = sum_i ( sum_{n != p} w_n psi_n psi_n' - (1 / sum w) (sum w_n psi_n)(sum w_n psi_n)' )

is a sum of squares. Because no w_n exceeds w_p, the subtraction cancels at most a factor of the group's size.
So I + M stays positive definite in floating point, however large the ratios in W become.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf

from optdesign._kernel import kernel
from optdesign.information import factorise, invert
from optdesign.problem import DesignProblem

RIDGE = 1e-15
"""Relative ridge on matrices positive definite up to rounding; raised, up to 1, where it is not enough."""

BATCH_ENTRIES = 1_000_000
"""Numbers held at a time while the information system is summed up over groups."""

ORDER_LIMIT = 4000
COST_LIMIT = 2e10
"""Largest dense matrix, and most multiplications a step, that are worth it."""


class SystemTooLarge(ValueError):
    """The Newton system is too large to be dense."""


class ByGroup:
    """One matrix a block and one Schur complement over groups."""

    def __init__(self, blocks: np.ndarray, starts: np.ndarray, ranks: np.ndarray) -> None:
        self.ranks, self.starts = ranks, starts
        self.by_block = np.argsort(blocks, kind="stable")
        self.block_starts = np.searchsorted(blocks[self.by_block], np.arange(len(ranks) + 1))
        self.group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        self.groups = len(starts) - 1
        self.size = int(np.diff(self.block_starts).max())
        self.factor: np.ndarray
        self.schur: np.ndarray

    def factorise(self, a: np.ndarray, w: np.ndarray) -> bool:
        """Prepare for whitened rows a and the diagonal w of W. Returns whether that succeeded."""
        self.factor = np.empty((len(self.ranks), self.size, self.size))
        self.schur = np.empty((self.groups, self.groups))
        ridge = RIDGE
        while ridge < 1:
            full = _group_system(
                a, w, self.group, self.by_block, self.block_starts, self.ranks, ridge, self.factor, self.schur
            )
            if full and _cholesky(self.schur, ridge):
                return True
            ridge *= 100
        return False

    def solve(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve (1) for du and dlambda."""
        du, dbound = np.empty(len(r)), np.empty(self.groups)
        _solve_by_group(self.starts, self.by_block, self.block_starts, self.factor, self.schur, r, du, dbound)
        return du, dbound


class ByInformation:
    """One matrix of order Q."""

    def __init__(self, blocks: np.ndarray, starts: np.ndarray, ranks: np.ndarray) -> None:
        self.blocks, self.starts, self.ranks = blocks, starts, ranks
        self.groups = len(starts) - 1
        self.offsets = np.concatenate([[0], np.cumsum(ranks * (ranks + 1) // 2)])
        self.order = int(self.offsets[-1])
        self.rows: tuple[np.ndarray, ...]
        self.matrix: np.ndarray

    def factorise(self, a: np.ndarray, w: np.ndarray) -> bool:
        """Prepare for whitened rows a and the diagonal w of W. Returns whether that succeeded."""
        total, pivot = np.add.reduceat(w, self.starts[:-1]), _pivots(w, self.starts)
        self.rows = (a, w, total, pivot, self.starts, self.blocks, self.ranks, self.offsets)
        ridge = RIDGE
        while ridge < 1:
            self.matrix = np.eye(self.order)
            batch = max(1, BATCH_ENTRIES // self.order)
            for first in range(0, self.groups, batch):
                sums = np.zeros((min(batch, self.groups - first), self.order))
                _add_groups(*self.rows, first, self.matrix, sums)
                # As in _cholesky, the lower triangle in place.
                dsyrk(-1.0, sums.T, beta=1.0, c=self.matrix.T, overwrite_c=1)
            if _cholesky(self.matrix, ridge):
                return True
            ridge *= 100
        return False

    def solve(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve (1) for du and dlambda."""
        du, dbound = np.empty(len(r)), np.empty(self.groups)
        a, w, total, pivot, starts, blocks, ranks, offsets = self.rows
        _solve_by_information(a, w, total, pivot, starts, blocks, ranks, offsets, self.matrix, r, du, dbound)
        return du, dbound


def cheaper_system(blocks: np.ndarray, starts: np.ndarray, ranks: np.ndarray) -> ByGroup | ByInformation:
    """The way to solve (1) that needs fewer multiplications, of those that are not too large."""
    groups = len(starts) - 1
    largest = int(np.bincount(blocks, minlength=1).max())
    q = int(np.sum(ranks * (ranks + 1)) // 2)
    ways: list[tuple[float, int, type[ByGroup] | type[ByInformation]]] = [
        (_cost_by_information(ranks, len(blocks), groups), q, ByInformation),
        (_cost_by_group(len(ranks), largest, groups), max(largest, groups), ByGroup),
    ]
    fit = [way for way in ways if way[1] <= ORDER_LIMIT and way[0] <= COST_LIMIT]
    if not fit:
        raise SystemTooLarge(
            f"method 'newton' needs dense matrices of at most {ORDER_LIMIT} rows and {COST_LIMIT:g} "
            f"multiplications a step; this problem needs {ways[0][1]} and {ways[0][0]:.1g}, or "
            f"{ways[1][1]} and {ways[1][0]:.1g}. Use method='bca' or 'auto'."
        )
    return min(fit, key=lambda way: way[0])[2](blocks, starts, ranks)


def step_time(problem: DesignProblem, rows: int, groups: int) -> float:
    """Nanoseconds of a Newton step on so many candidates and groups, roughly, if blocks have equally many."""
    in_block = -(-rows // problem.n_blocks)
    return (
        70_000.0
        + 250 * rows
        + min(
            _cost_by_group(problem.n_blocks, in_block, groups),
            _cost_by_information(problem.ranks, rows, groups),
        )
    )


def _cost_by_group(blocks: int, largest: int, groups: int) -> float:
    """Multiplications of a step by group; those in BLAS count a third."""
    return blocks * float(largest) ** 3 + groups**3 / 9


def _cost_by_information(ranks: np.ndarray, rows: int, groups: int) -> float:
    """Multiplications of a step by information; those in BLAS count a third."""
    entries = ranks * (ranks + 1) / 2
    q = float(entries.sum())
    return 1.5 * rows * float(entries.max()) ** 2 + groups * q**2 / 6 + q**3 / 9


def _cholesky(matrix: np.ndarray, ridge: float) -> bool:
    """Overwrite the lower triangle of a matrix, plus a ridge, with its factor. Returns whether it exists."""
    diagonal = np.einsum("ii->i", matrix)
    diagonal *= 1.0 + ridge
    # A row-major lower triangle is a column-major upper one, so nothing is copied.
    _, info = dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)
    return info == 0


@kernel
def _group_system(a, w, group, by_block, block_starts, ranks, ridge, factor, schur):
    """Factorise H + W^-1 in every block and sum up the Schur complement. Overwrites factor and schur.

    Returns whether every factor exists.
    """
    sizes = np.diff(block_starts)
    matrix = np.empty_like(factor)
    for b in range(len(sizes)):
        lo = block_starts[b]
        for i in range(sizes[b]):
            n = by_block[lo + i]
            for j in range(i + 1):
                dot = 0.0
                for k in range(ranks[b]):
                    dot += a[n, k] * a[by_block[lo + j], k]
                matrix[b, i, j] = dot * dot
            matrix[b, i, i] = (1.0 + ridge) * matrix[b, i, i] + 1.0 / w[n]
    if not np.isfinite(factorise(matrix, sizes, factor)).all():
        return False
    invert(factor, sizes, matrix)
    schur[:] = 0.0
    for b in range(len(sizes)):
        lo = block_starts[b]
        for i in range(sizes[b]):
            for j in range(sizes[b]):
                schur[group[by_block[lo + i]], group[by_block[lo + j]]] += matrix[b, i, j]
    return True


@kernel
def _solve_by_group(starts, by_block, block_starts, factor, schur, r, du, dbound):
    """Overwrite du and dbound with the solution of (1), given factors of the blocks and of the complement."""
    t = _block_solve(factor, by_block, block_starts, r)
    for i in range(len(dbound)):
        dbound[i] = t[starts[i] : starts[i + 1]].sum()
    _cholesky_solve(schur, dbound)
    t = r.copy()
    for i in range(len(dbound)):
        t[starts[i] : starts[i + 1]] -= dbound[i]
    du[:] = _block_solve(factor, by_block, block_starts, t)


@kernel
def _block_solve(factor, by_block, block_starts, r):
    """Solve (H + W^-1) t = r block by block, with the factors L^-1."""
    t = np.empty(len(r))
    y = np.empty(factor.shape[1])
    for b in range(len(block_starts) - 1):
        lo = block_starts[b]
        size = block_starts[b + 1] - lo
        for i in range(size):
            y[i] = 0.0
            for k in range(i + 1):
                y[i] += factor[b, i, k] * r[by_block[lo + k]]
        for i in range(size):
            t[by_block[lo + i]] = 0.0
        for k in range(size):
            for i in range(k + 1):
                t[by_block[lo + i]] += factor[b, k, i] * y[k]
    return t


@kernel
def _pivots(w, starts):
    """Row of the largest w in every group."""
    pivot = np.empty(len(starts) - 1, np.int64)
    for i in range(len(pivot)):
        pivot[i] = starts[i] + np.argmax(w[starts[i] : starts[i + 1]])
    return pivot


@kernel
def _add_groups(a, w, total, pivot, starts, blocks, ranks, offsets, first, matrix, sums):
    """Add the squares of M for some groups to the lower triangle of matrix; write the rows to subtract.

    Overwrites matrix and sums; the caller subtracts sums' sums.
    """
    width = a.shape[1] * (a.shape[1] + 1) // 2
    phi, head = np.empty(width), np.empty(width)
    for i in range(first, first + len(sums)):
        p = pivot[i]
        bp = blocks[p]
        qp = _svec(a[p], ranks[bp], head)
        op = offsets[bp]
        row = sums[i - first]
        elsewhere = 0.0
        for n in range(starts[i], starts[i + 1]):
            if n == p:
                continue
            b = blocks[n]
            o = offsets[b]
            q = _svec(a[n], ranks[b], phi)
            if b == bp:
                for k in range(q):
                    phi[k] -= head[k]
            elif b > bp:
                elsewhere += w[n]
                _add_product(matrix[o : o + q, op : op + qp], -w[n], phi, head)
            else:
                elsewhere += w[n]
                _add_product(matrix[op : op + qp, o : o + q], -w[n], head, phi)
            _add_square(matrix[o : o + q, o : o + q], w[n], phi)
            for k in range(q):
                row[o + k] += w[n] * phi[k]
        if elsewhere > 0.0:
            _add_square(matrix[op : op + qp, op : op + qp], elsewhere, head)
            for k in range(qp):
                row[op + k] -= elsewhere * head[k]
        row /= np.sqrt(total[i])


@kernel
def _add_square(matrix, scale, v):
    """Add scale v v' to the lower triangle of matrix. Overwrites matrix."""
    for k in range(len(matrix)):
        c = scale * v[k]
        for m in range(k + 1):
            matrix[k, m] += c * v[m]


@kernel
def _add_product(matrix, scale, v, y):
    """Add scale v y' to matrix. Overwrites matrix."""
    for k in range(matrix.shape[0]):
        c = scale * v[k]
        for m in range(matrix.shape[1]):
            matrix[k, m] += c * y[m]


@kernel
def _svec(row, rank, out):
    """Overwrite out with svec(a a'), so that inner products of svec are squared inner products of a."""
    k = 0
    for i in range(rank):
        for j in range(i):
            out[k] = np.sqrt(2.0) * row[i] * row[j]
            k += 1
        out[k] = row[i] * row[i]
        k += 1
    return k


@kernel
def _solve_by_information(a, w, total, pivot, starts, blocks, ranks, offsets, factor, r, du, dbound):
    """Overwrite du and dbound with the solution of (1), given the factor of I + M."""
    y = np.zeros(offsets[-1])
    _centred(a, w, total, pivot, starts, blocks, ranks, offsets, r, y, False, du, dbound)
    _cholesky_solve(factor, y)
    _centred(a, w, total, pivot, starts, blocks, ranks, offsets, r, y, True, du, dbound)


@kernel
def _centred(a, w, total, pivot, starts, blocks, ranks, offsets, r, y, finish, du, bound):
    """One pass over the groups with W centred in each: W~ = W - W 1 1' W / sum w.

    finish = False: overwrite y with Phi' W~ r. finish = True: overwrite du with W~ (r - Phi y) and bound
    with the weighted mean of r - Phi y. All differences are taken to the group's pivot.
    """
    root = np.sqrt(2.0)
    for i in range(len(starts) - 1):
        for n in range(starts[i], starts[i + 1]):
            du[n] = r[n]
            if finish:
                b = blocks[n]
                k = offsets[b]
                for row in range(ranks[b]):
                    t = 0.0
                    for column in range(row):
                        t += y[k] * a[n, column]
                        k += 1
                    du[n] -= (root * t + y[k] * a[n, row]) * a[n, row]
                    k += 1
        p = pivot[i]
        at_pivot = du[p]
        shift = 0.0
        for n in range(starts[i], starts[i + 1]):
            if n != p:
                du[n] -= at_pivot
                shift += w[n] * du[n]
        shift /= total[i]
        bound[i] = at_pivot + shift
        rest = 0.0
        for n in range(starts[i], starts[i + 1]):
            if n != p:
                du[n] = w[n] * (du[n] - shift)
                rest += du[n]
        du[p] = -rest
        if not finish:
            for n in range(starts[i], starts[i + 1]):
                b = blocks[n]
                k = offsets[b]
                for row in range(ranks[b]):
                    c = root * du[n] * a[n, row]
                    for column in range(row):
                        y[k] += c * a[n, column]
                        k += 1
                    y[k] += du[n] * a[n, row] * a[n, row]
                    k += 1


@kernel
def _cholesky_solve(factor, b):
    """Overwrite b with the solution of L L' x = b, L the lower triangle of factor."""
    n = len(b)
    for i in range(n):
        t = b[i]
        for k in range(i):
            t -= factor[i, k] * b[k]
        b[i] = t / factor[i, i]
    for i in range(n - 1, -1, -1):
        b[i] /= factor[i, i]
        for k in range(i):
            b[k] -= factor[i, k] * b[i]
