"""The Newton system by candidates, block by block, and a Schur complement over groups.

H + W^-1 is block diagonal over blocks. Each is factorised, then the n_groups x n_groups Schur complement
A (H + W^-1)^-1 A'. Large blocks are left to LAPACK, one after the other; of small ones all are done at once
in compiled loops, since calls would take longer than the work.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg.blas import dsyrk

from optdesign.algebra.blocks import factorise, invert
from optdesign.runtime.jit import kernel
from optdesign.solvers import costs
from optdesign.solvers.systems import dense
from optdesign.solvers.systems.layout import Layout


class ByGroup:
    """One matrix a block and one Schur complement over groups."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.group = layout.group
        self.order = max(layout.n_groups, layout.largest)
        size = len(layout.ranks), int(layout.ranks.max()), layout.largest
        loops = costs.blocks_by_loops(*size) <= costs.blocks_by_calls(*size, layout.n_groups)
        self.blocks = _AtOnce(layout) if loops else _OneByOne(layout)
        self.schur: np.ndarray

    def factorise(self, a: np.ndarray, w: np.ndarray) -> dense.Attempt:
        """Prepare for whitened rows a and the diagonal w of W. Returns whether that succeeded."""
        m = self.layout.n_groups
        for ridge in dense.RIDGES:
            self.schur = np.zeros((m, m))
            if (yield from self.blocks.factorise(a, w, ridge, self.schur)):
                self.schur.ravel()[:: m + 1] *= 1.0 + ridge
                if (yield from dense.cholesky(self.schur)):
                    return True
        return False

    def solve(self, r: np.ndarray) -> dense.Solution:
        """Solve (1) for du and dlambda."""
        yield
        m = self.layout.n_groups
        sums = np.bincount(self.group, weights=self.blocks.solve(r), minlength=m)
        dbound = dense.solve(self.schur, sums)
        return self.blocks.solve(r - dbound[self.group]), dbound


class _OneByOne:
    """The blocks of H + W^-1, by LAPACK."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.factors: list[np.ndarray] = []

    def factorise(self, a: np.ndarray, w: np.ndarray, ridge: float, schur: np.ndarray) -> dense.Attempt:
        """Factorise all, and add what they contribute to the Schur complement. Returns whether they exist."""
        self.factors = []
        for _, rows, rank in self.layout.blocks():
            part = np.ascontiguousarray(a[rows, :rank])
            matrix = np.zeros((len(part), len(part)))
            if rank:
                dsyrk(1.0, part.T, trans=1, c=matrix.T, overwrite_c=1, lower=0)
                yield
            _square(matrix, 1.0 + ridge, w[rows])
            if not (yield from dense.cholesky(matrix)):
                return False
            self.factors.append(matrix)
            yield from _complement(matrix, self.layout.group[rows], schur)
        return True

    def solve(self, r: np.ndarray) -> np.ndarray:
        """Solve (H + W^-1) t = r."""
        t = np.empty_like(r)
        for (_, rows, _), factor in zip(self.layout.blocks(), self.factors, strict=True):
            t[rows] = dense.solve(factor, r[rows])
        return t


class _AtOnce:
    """The same in loops, with the inverse factors of all blocks in one array."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.sizes = layout, layout.sizes
        self.rows, self.starts = layout.by_block
        self.factor: np.ndarray

    def factorise(self, a: np.ndarray, w: np.ndarray, ridge: float, schur: np.ndarray) -> dense.Attempt:
        """Factorise all, and add what they contribute to the Schur complement. Returns whether they exist."""
        yield
        size = int(self.sizes.max())
        matrix, self.factor = np.zeros((2, len(self.sizes), size, size))
        write_blocks(a, w, self.rows, self.starts, self.layout.ranks, 1.0 + ridge, matrix)
        if factorise(matrix, self.sizes, self.factor).min() == -np.inf:
            return False
        invert(self.factor, self.sizes, matrix)
        add_blocks_up(matrix, self.layout.group[self.rows], self.starts, schur)
        return True

    def solve(self, r: np.ndarray) -> np.ndarray:
        """Solve (H + W^-1) t = r."""
        t = np.empty_like(r)
        solve_blocks(self.factor, self.rows, self.starts, r, t)
        return t


def _complement(factor: np.ndarray, group: np.ndarray, schur: np.ndarray) -> Iterator[None]:
    """Add what a block contributes to the Schur complement. Overwrites schur."""
    present = np.unique(group)
    if 3 * len(present) <= len(group):  # as many columns take no longer than an inverse
        sums = (present[:, None] == group).astype(float)
        part = sums @ dense.solve(factor, sums.T)
        schur[np.ix_(present, present)] += part
    else:
        inverse = factor.copy()
        dense.inverse(inverse)
        yield
        _add_up(inverse, group, schur)


@kernel
def _square(matrix, scale, w):
    """Overwrite the lower triangle of a Gram matrix with its squares, the diagonal times scale plus 1 / w."""
    for i in range(len(matrix)):
        for j in range(i + 1):
            matrix[i, j] *= matrix[i, j]
        matrix[i, i] = scale * matrix[i, i] + 1.0 / w[i]


@kernel
def _add_up(inverse, group, schur):
    """Add the lower triangle of a matrix of candidates to the one of their groups. Overwrites schur."""
    for i in range(len(group)):
        for j in range(i):
            if group[i] == group[j]:
                schur[group[i], group[i]] += 2.0 * inverse[i, j]
            elif group[i] > group[j]:
                schur[group[i], group[j]] += inverse[i, j]
            else:
                schur[group[j], group[i]] += inverse[i, j]
        schur[group[i], group[i]] += inverse[i, i]


@kernel
def write_blocks(a, w, rows, starts, ranks, scale, matrix):
    """Overwrite the lower triangles of a stack of matrices with the blocks of H + W^-1, as _square does."""
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
def add_blocks_up(inverse, group, starts, schur):
    """Add all matrices of a stack, of candidates, to the one of their groups. Overwrites schur."""
    for b in range(len(inverse)):
        _add_up(inverse[b], group[starts[b] : starts[b + 1]], schur)


@kernel
def solve_blocks(factor, rows, starts, r, t):
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
