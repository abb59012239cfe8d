"""The Newton system by information: one matrix of order Q, the sum of r (r + 1) / 2 over the blocks.

H = Phi Phi' with phi_n = svec(a_n a_n'), Q columns. In each group the candidate p of largest W is eliminated
through du_p = -sum of the others. With psi_n = phi_n - phi_p, the unknown y = Phi' du solves (I + M) y = rhs,
where

    M = sum_i ( sum_{n != p} w_n psi_n psi_n' - (1 / sum w) (sum w_n psi_n)(sum w_n psi_n)' )

is a sum of squares. Because no w_n exceeds w_p, the subtraction cancels at most a factor of the group's size.
So I + M stays positive definite in floating point, however large the ratios in W become.
"""

from __future__ import annotations

import numpy as np

from optdesign.runtime import threads
from optdesign.runtime.jit import kernel
from optdesign.runtime.stopping import raise_if_stopped
from optdesign.solvers.systems import dense
from optdesign.solvers.systems.layout import Layout


class ByInformation:
    """One matrix of order Q."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.order = layout, int(layout.offsets[-1])
        self.places = layout.block, layout.ranks, layout.offsets
        width, groups_per_row = int(layout.entries.max()), layout.n_groups / layout.n_rows
        # A thread squares no fewer rows at a time than take as much memory as their sum.
        rows = max(4 * threads.PIECE // width**2, self.order**2 // width)
        self.groups_to_square = max(1, int(rows * groups_per_row))
        self.groups_to_multiply = max(1, int(threads.PIECE // width * groups_per_row))
        self.rows_per_call = max(dense.PIECE_COLUMNS, threads.PIECE // width)
        self.a, self.w, self.total, self.pivot, self.matrix = (np.empty(0) for _ in range(5))

    def factorise(self, a: np.ndarray, w: np.ndarray) -> bool:
        """Prepare for whitened rows a and the diagonal w of W. Returns False if the matrix is singular."""
        n = self.layout.n_groups
        self.a, self.w, self.total = a, w, np.empty(n)
        self.pivot = _pivots(w, self.layout.starts, self.total)
        for ridge in dense.RIDGES:
            self.matrix = threads.summed(self._squared, n, self.groups_to_square, self.order**2)
            diagonal = self.matrix.ravel()[:: self.order + 1]
            diagonal += 1.0
            diagonal *= 1.0 + ridge
            if dense.cholesky(self.matrix):
                return True
        return False

    def _squared(self, first: int, last: int) -> np.ndarray:
        """Return M for the groups first .. last - 1, lower triangle."""
        starts = self.layout.starts
        rows = self.a, self.w, self.pivot, starts, *self.places, first, last
        matrix, sums = np.zeros((self.order, self.order)), np.zeros((last - first, self.order))
        for lo in range(starts[first], starts[last], self.rows_per_call):
            raise_if_stopped()
            hi = min(lo + self.rows_per_call, starts[last])
            _add_squares(*rows, lo, hi, matrix, sums)
        sums /= np.sqrt(self.total[first:last])[:, None]
        dense.subtract_square(matrix, sums)
        return matrix

    def solve(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the solution du and dlambda of (1)."""
        n, starts = self.layout.n_groups, self.layout.starts
        groups = self.w, self.total, self.pivot, starts
        du, dbound = r.copy(), np.empty(n)

        def right_side(first: int, last: int) -> np.ndarray:
            y = np.zeros(self.order)
            _centre(*groups, first, last, du, dbound)
            _add_products(self.a, *self.places, starts[first], starts[last], du, y)
            return y

        solution = dense.solve(
            self.matrix, threads.summed(right_side, n, self.groups_to_multiply, self.order)
        )
        du[:] = r

        def finish(first: int, last: int) -> None:
            _subtract_products(self.a, *self.places, starts[first], starts[last], solution, du)
            _centre(*groups, first, last, du, dbound)

        threads.results(finish, n, self.groups_to_multiply)
        return du, dbound


@kernel
def _pivots(w, starts, total):
    """Return the row of the largest w in every group. Overwrites total with the sums of w."""
    pivot = np.empty(len(starts) - 1, np.int64)
    for i in range(len(pivot)):
        pivot[i] = starts[i]
        total[i] = w[starts[i]]
        for n in range(starts[i] + 1, starts[i + 1]):
            total[i] += w[n]
            if w[n] > w[pivot[i]]:
                pivot[i] = n
    return pivot


@kernel
def _add_squares(a, w, pivot, starts, blocks, ranks, offsets, first, last, lo, hi, matrix, sums):
    """Add w psi psi' of some rows to matrix, and w psi to the sums of their groups. Overwrites both.

    The rows are lo .. hi - 1 of the groups first .. last - 1. Only the lower triangle of matrix is written.
    """
    width = a.shape[1] * (a.shape[1] + 1) // 2
    phi, head = np.empty(width), np.empty(width)
    for i in range(first, last):
        p, row = pivot[i], sums[i - first]
        bp = blocks[p]
        op, qp = offsets[bp], _svec(a[p], ranks[bp], head)
        elsewhere = 0.0  # sum of w in other blocks than that of the pivot
        for n in range(max(lo, starts[i]), min(hi, starts[i + 1])):
            if n == p:
                continue
            b = blocks[n]
            o, q = offsets[b], _svec(a[n], ranks[b], phi)
            if b == bp:
                for k in range(q):
                    phi[k] -= head[k]
            else:
                elsewhere += w[n]
                if b > bp:
                    _add_product(matrix[o : o + q], op, -w[n], phi, head[:qp])
                else:
                    _add_product(matrix[op : op + qp], o, -w[n], head, phi[:q])
            _add_square(matrix[o : o + q], o, w[n], phi)
            for k in range(q):
                row[o + k] += w[n] * phi[k]
        if elsewhere > 0.0:
            _add_square(matrix[op : op + qp], op, elsewhere, head)
            for k in range(qp):
                row[op + k] -= elsewhere * head[k]


@kernel
def _add_square(rows, first, scale, v):
    """Add scale v v' to the lower triangle of a block that begins at column ``first``. Overwrites rows."""
    for k in range(len(rows)):
        row, c = rows[k, first : first + k + 1], scale * v[k]
        for m in range(len(row)):
            row[m] += c * v[m]


@kernel
def _add_product(rows, first, scale, v, y):
    """Add scale v y' to a block that begins at column ``first``. Overwrites rows."""
    for k in range(len(rows)):
        row, c = rows[k, first : first + len(y)], scale * v[k]
        for m in range(len(y)):
            row[m] += c * y[m]


@kernel
def _svec(row, rank, out):
    """Overwrite out with svec(a a'), so that inner products of svec are squared inner products of a.

    Returns its length.
    """
    k = 0
    for i in range(rank):
        for j in range(i):
            out[k] = np.sqrt(2.0) * row[i] * row[j]
            k += 1
        out[k] = row[i] * row[i]
        k += 1
    return k


@kernel
def _centre(w, total, pivot, starts, first, last, v, bound):
    """Overwrite v with W~ v and bound with the weighted means of v, for the groups first .. last - 1.

    W~ is W - W 1 1' W / sum w. Differences are taken to the pivot of the group.
    """
    for i in range(first, last):
        p = pivot[i]
        at_pivot, shift, rest = v[p], 0.0, 0.0
        for n in range(starts[i], starts[i + 1]):
            if n != p:
                v[n] -= at_pivot
                shift += w[n] * v[n]
        shift /= total[i]
        bound[i] = at_pivot + shift
        for n in range(starts[i], starts[i + 1]):
            if n != p:
                v[n] = w[n] * (v[n] - shift)
                rest += v[n]
        v[p] = -rest


@kernel
def _add_products(a, blocks, ranks, offsets, lo, hi, v, y):
    """Add Phi' v of the rows lo .. hi - 1 to y. Overwrites y."""
    for n in range(lo, hi):
        k = offsets[blocks[n]]
        for i in range(ranks[blocks[n]]):
            c = v[n] * a[n, i]
            for j in range(i):
                y[k] += np.sqrt(2.0) * c * a[n, j]
                k += 1
            y[k] += c * a[n, i]
            k += 1


@kernel
def _subtract_products(a, blocks, ranks, offsets, lo, hi, y, v):
    """Subtract Phi y of the rows lo .. hi - 1 from v. Overwrites v."""
    for n in range(lo, hi):
        k = offsets[blocks[n]]
        for i in range(ranks[blocks[n]]):
            t = 0.0
            for j in range(i):
                t += y[k] * a[n, j]
                k += 1
            v[n] -= (np.sqrt(2.0) * t + y[k] * a[n, i]) * a[n, i]
            k += 1
