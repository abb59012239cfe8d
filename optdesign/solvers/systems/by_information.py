"""The Newton system by information: one matrix of order Q, the sum of r (r + 1) / 2 over the blocks.

H = Phi Phi' with phi_n = svec(a_n a_n'), Q columns. In each group the candidate p of largest W is eliminated
through du_p = -sum of the others. With psi_n = phi_n - phi_p, the unknown y = Phi' du solves (I + M) y = rhs,
where

    M = sum_i ( sum_{n != p} w_n psi_n psi_n' - (1 / sum w) (sum w_n psi_n)(sum w_n psi_n)' )

is a sum of squares. Because no w_n exceeds w_p, the subtraction cancels at most a factor of the group's size.
So I + M stays positive definite in floating point, however large the ratios in W become.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from optdesign.algebra.blocks import entries
from optdesign.runtime import threads
from optdesign.runtime.jit import kernel
from optdesign.solvers import costs
from optdesign.solvers.costs import UNITS
from optdesign.solvers.systems import dense
from optdesign.solvers.systems.layout import Layout
from optdesign.solvers.systems.pivots import pivots


class ByInformation:
    """One matrix of order Q."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.order = int(layout.offsets[-1])
        # Groups that a thread works on at a time, for the matrix and for a right-hand side.
        width = int(layout.entries.max())
        # No fewer rows than take as much memory as what is summed up for them.
        rows = (max(4 * threads.PIECE // width**2, self.order**2 // width), threads.PIECE // width)
        self.squares, self.sums = (max(1, some * layout.n_groups // layout.n_rows) for some in rows)
        # Rows that are worked on at a time, also of one group.
        self.most = max(dense.PIECE, threads.PIECE // width)
        sizes = len(layout.ranks), int(layout.ranks.max()), layout.n_rows
        # Calls take rows from where they are several times, and leave nothing to other threads.
        calls = costs.squares_by_calls(*sizes) + 8 * UNITS.row * layout.n_rows
        self.by_loops = costs.squares_by_loops(*sizes) <= calls
        self.large = np.flatnonzero(np.diff(layout.starts) > self.most)
        self.rows: Any
        self.matrix: np.ndarray

    def factorise(self, a: np.ndarray, w: np.ndarray) -> dense.Attempt:
        """Prepare for whitened rows a and the diagonal w of W. Returns whether that succeeded."""
        layout = self.layout
        total = np.empty(layout.n_groups)
        pivot = pivots(w, layout.starts, total)
        self.rows = (a, w, total, pivot, layout.starts, layout.block, layout.ranks, layout.offsets)
        add = self._add_by_rows if self.by_loops else self._add_by_blocks
        for ridge in dense.RIDGES:
            self.matrix = np.zeros((self.order, self.order))
            yield from add()
            diagonal = self.matrix.ravel()[:: self.order + 1]
            diagonal += 1.0
            diagonal *= 1.0 + ridge
            if (yield from dense.cholesky(self.matrix)):
                return True
        return False

    def solve(self, r: np.ndarray) -> dense.Solution:
        """Solve (1) for du and dlambda."""
        yield
        n, starts = self.layout.n_groups, self.layout.starts
        du, dbound = np.empty(len(r)), np.empty(n)

        def one_pass(first: int, last: int, y: np.ndarray, finish: bool) -> np.ndarray:
            own = du[starts[first] : starts[last]], dbound[first:last]
            _centred(*self.rows, first, last, r, y, finish, *own)
            return y

        if threads.fits_one_piece(n, self.sums):
            y = dense.solve(self.matrix, one_pass(0, n, np.zeros(self.order), False))
            one_pass(0, n, y, True)
            return du, dbound
        parts = threads.each(lambda i, j: one_pass(i, j, np.zeros(self.order), False), n, self.sums)
        yield
        y = dense.solve(self.matrix, np.sum(parts, axis=0))
        threads.each(lambda i, j: one_pass(i, j, y, True), n, self.sums)
        return du, dbound

    def _add_by_rows(self) -> Iterator[None]:
        """Add M to the matrix, row by row."""
        yield from self._add_large()
        n = self.layout.n_groups
        if n <= self.squares:
            self._add_part(0, n, self.matrix)
            yield
            return
        for matrix in threads.in_order(
            lambda i, j: self._add_part(i, j, np.zeros_like(self.matrix)), n, self.squares, self.matrix.size
        ):
            self.matrix += matrix
            yield

    def _add_large(self) -> Iterator[None]:
        """Add M for the groups that have many candidates, some of them at a time."""
        a, w, total, pivot, starts, *places = self.rows
        for i in self.large:
            row, phi, head = np.zeros(self.order), *np.empty((2, entries(a.shape[1])))
            for lo in range(starts[i], starts[i + 1], self.most):
                hi = min(lo + self.most, starts[i + 1])
                _add_candidates(a, w, pivot[i], *places, lo, hi, self.matrix, row, phi, head)
                yield
            row /= np.sqrt(total[i])
            self.matrix -= np.outer(row, row)

    def _add_part(self, first: int, last: int, matrix: np.ndarray) -> np.ndarray:
        """Add M for some groups to a matrix, and return it."""
        sums = np.zeros((last - first, self.order))
        count = _add_groups(*self.rows, first, last, self.most, matrix, sums)
        for _ in dense.add_square(matrix, sums[:count], -1.0):
            pass
        return matrix

    def _add_by_blocks(self) -> Iterator[None]:
        """Return the same by products of matrices."""
        for first in range(0, self.layout.n_groups, dense.PIECE):
            sums = np.zeros((min(dense.PIECE, self.layout.n_groups - first), self.order))
            yield from self._add_batch(first, sums)
            yield from dense.add_square(self.matrix, sums, -1.0)

    def _add_batch(self, first: int, sums: np.ndarray) -> Iterator[None]:
        """Add the squares of M for some groups, by a product for each block.

        Writes the rows to subtract into sums. Candidates of other blocks than their pivots' add -w (phi
        phi_p' + phi_p phi') as well, which is a product of the sums of a group and its pivot: one more for
        each block of pivots.
        """
        a, _, total, pivot, starts, block, ranks, offsets = self.rows
        last = first + len(sums)
        elsewhere = np.zeros(len(sums))
        for lo in range(starts[first], starts[last], self.most):
            yield from self._add_squares(first, lo, min(lo + self.most, starts[last]), sums, elsewhere)
        heads = pivot[first:last]
        for c in np.unique(block[heads[elsewhere > 0]]):
            at = np.flatnonzero((block[heads] == c) & (elsewhere > 0))
            phi = _svecs(a, heads[at], ranks[c])
            others, lo, hi = sums[at], offsets[c], offsets[c + 1]
            self.matrix[hi:, lo:hi] -= others[:, hi:].T @ phi
            self.matrix[lo:hi, :lo] -= phi.T @ others[:, :lo]
            yield
            _add_rows(sums, at, lo, -elsewhere[at], phi)
            phi *= np.sqrt(elsewhere[at])[:, None]
            yield from dense.add_square(self.matrix[lo:hi, lo:hi], phi)
        sums /= np.sqrt(total[first:last])[:, None]

    def _add_squares(
        self, first: int, lo: int, hi: int, sums: np.ndarray, elsewhere: np.ndarray
    ) -> Iterator[None]:
        """Add w psi psi' of the rows lo .. hi - 1 within their blocks, and w psi to sums.

        The sums begin with the group ``first``. Weights of rows in other blocks than their pivots are added
        to elsewhere.
        """
        a, w, _, pivot, _, block, ranks, offsets = self.rows
        rows = lo + np.argsort(block[lo:hi], kind="stable")
        for part in np.split(rows, np.flatnonzero(np.diff(block[rows])) + 1):
            b = block[part[0]]
            head = pivot[self.layout.group[part]]
            part, head = part[part != head], head[part != head]
            group, weight = self.layout.group[part] - first, w[part]
            phi = _svecs(a, part, ranks[b])
            same = block[head] == b
            phi[same] -= _svecs(a, head[same], ranks[b])
            elsewhere += np.bincount(group, np.where(same, 0.0, weight), len(sums))
            _add_rows(sums, group, offsets[b], weight, phi)
            phi *= np.sqrt(weight)[:, None]
            own = slice(offsets[b], offsets[b + 1])
            yield from dense.add_square(self.matrix[own, own], phi)


def _svecs(a: np.ndarray, rows: np.ndarray, rank: int) -> np.ndarray:
    """svec(a a') of some rows."""
    out = np.empty((len(rows), entries(rank)))
    _write_svecs(a, rows, rank, out)
    return out


@kernel
def _write_svecs(a, rows, rank, out):
    """Overwrite out with svec(a a') of some rows."""
    for i in range(len(rows)):
        _svec(a[rows[i]], rank, out[i])


@kernel
def _add_rows(sums, at, offset, scale, rows):
    """Add scaled rows to parts of sums. Overwrites sums."""
    for i in range(len(at)):
        for k in range(rows.shape[1]):
            sums[at[i], offset + k] += scale[i] * rows[i, k]


@kernel
def _add_groups(a, w, total, pivot, starts, blocks, ranks, offsets, first, last, most, matrix, sums):
    """Add M for those of the groups first .. last - 1 that have so many candidates at most.

    Overwrites the lower triangle of matrix and, given as zeros, sums. Returns how many rows of sums are left
    to the caller: their squares are to be subtracted.
    """
    width = a.shape[1] * (a.shape[1] + 1) // 2
    phi, head = np.empty(width), np.empty(width)
    seen, touched = np.empty(len(ranks), np.int64), np.empty(len(ranks), np.int64)
    for b in range(len(ranks)):
        seen[b] = -1
    count = 0
    for i in range(first, last):
        if starts[i + 1] - starts[i] > most:
            continue
        row = sums[count]
        entries, n_touched = 0, 0
        for n in range(starts[i], starts[i + 1]):
            b = blocks[n]
            if seen[b] != i:
                seen[b] = i
                touched[n_touched] = b
                n_touched += 1
                entries += offsets[b + 1] - offsets[b]
        lo, hi = starts[i], starts[i + 1]
        _add_candidates(a, w, pivot[i], blocks, ranks, offsets, lo, hi, matrix, row, phi, head)
        if UNITS.loop * entries * entries > UNITS.flop * len(matrix) * len(
            matrix
        ):  # then BLAS does it, many at a time
            row /= np.sqrt(total[i])
            count += 1
            continue
        for s in range(n_touched):
            b = touched[s]
            mine = row[offsets[b] : offsets[b + 1]]
            _add_square(
                matrix[offsets[b] : offsets[b + 1], offsets[b] : offsets[b + 1]], -1.0 / total[i], mine
            )
            for t in range(n_touched):
                c = touched[t]
                if c < b:
                    other = row[offsets[c] : offsets[c + 1]]
                    both = matrix[offsets[b] : offsets[b + 1], offsets[c] : offsets[c + 1]]
                    _add_product(both, -1.0 / total[i], mine, other)
        for s in range(n_touched):
            for k in range(offsets[touched[s]], offsets[touched[s] + 1]):
                row[k] = 0.0
    return count


@kernel
def _add_candidates(a, w, p, blocks, ranks, offsets, lo, hi, matrix, row, phi, head):
    """Add w psi psi' of the candidates lo .. hi - 1 of a group with pivot p, and w psi to row.

    Overwrites the lower triangle of matrix, row, and the buffers phi and head.
    """
    bp = blocks[p]
    qp = _svec(a[p], ranks[bp], head)
    op = offsets[bp]
    elsewhere = 0.0
    for n in range(lo, hi):
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
def _centred(a, w, total, pivot, starts, blocks, ranks, offsets, first, last, r, y, finish, du, bound):
    """One pass over the groups first .. last - 1 with W centred in each: W~ = W - W 1 1' W / sum w.

    finish = False: overwrite y with Phi' W~ r. finish = True: overwrite du with W~ (r - Phi y) and bound
    with the weighted mean of r - Phi y. All differences are taken to the group's pivot. Both are those of
    these groups only.
    """
    root, lo = np.sqrt(2.0), starts[first]
    for i in range(first, last):
        for n in range(starts[i], starts[i + 1]):
            du[n - lo] = r[n]
            if finish:
                b = blocks[n]
                k = offsets[b]
                for row in range(ranks[b]):
                    t = 0.0
                    for column in range(row):
                        t += y[k] * a[n, column]
                        k += 1
                    du[n - lo] -= (root * t + y[k] * a[n, row]) * a[n, row]
                    k += 1
        p = pivot[i]
        at_pivot = du[p - lo]
        shift = 0.0
        for n in range(starts[i], starts[i + 1]):
            if n != p:
                du[n - lo] -= at_pivot
                shift += w[n] * du[n - lo]
        shift /= total[i]
        bound[i - first] = at_pivot + shift
        rest = 0.0
        for n in range(starts[i], starts[i + 1]):
            if n != p:
                du[n - lo] = w[n] * (du[n - lo] - shift)
                rest += du[n - lo]
        du[p - lo] = -rest
        if not finish:
            for n in range(starts[i], starts[i + 1]):
                b = blocks[n]
                k = offsets[b]
                for row in range(ranks[b]):
                    c = root * du[n - lo] * a[n, row]
                    for column in range(row):
                        y[k] += c * a[n, column]
                        k += 1
                    y[k] += du[n - lo] * a[n, row] * a[n, row]
                    k += 1
