"""The Newton system in the differences of candidates to one of their group; for groups within one block.

With du_p = -sum of the others for the candidate p of largest W in each group, and psi_n = phi_n - phi_p,
system (1) becomes N du = r_n - r_p of order n_rows - n_groups, with

    N_nm = psi_n' psi_m + [n = m] / w_n + [same group] / w_p.

For candidates of one block a_n a_n' - a_p a_p' is half of d s' + s d', with d = a_n - a_p and s = a_n + a_p:

    psi_n' psi_m = ( (d_n' d_m)(s_n' s_m) + (d_n' s_m)(s_n' d_m) ) / 2,

in which nothing cancels, however near the candidates of a group are.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from optdesign.runtime.jit import kernel
from optdesign.solvers.systems import dense
from optdesign.solvers.systems.layout import Layout
from optdesign.solvers.systems.pivots import pivots


class ByDifference:
    """One matrix a block, of as many rows as there are differences."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.order = int(layout.sizes.max())
        self.a: np.ndarray
        self.w: np.ndarray
        self.pivot: np.ndarray
        self.parts: list[tuple[np.ndarray, np.ndarray]]
        """Rows that are no pivots, and the factor of their part of N, of every block."""

    def factorise(self, a: np.ndarray, w: np.ndarray) -> dense.Attempt:
        """Prepare for whitened rows a and the diagonal w of W. Returns whether that succeeded."""
        self.a, self.w = a, w
        self.pivot = pivots(w, self.layout.starts, np.empty(self.layout.n_groups))
        others = np.ones(self.layout.n_rows, np.bool_)
        others[self.pivot] = False
        for ridge in dense.RIDGES:
            self.parts = []
            for _, rows, rank in self.layout.blocks():
                free = np.arange(self.layout.n_rows)[rows]
                free = free[others[free]]
                matrix = yield from self._matrix(free, rank, 1.0 + ridge)
                if not (yield from dense.cholesky(matrix)):
                    break
                self.parts.append((free, matrix))
            else:
                return True
        return False

    def _matrix(self, free: np.ndarray, rank: int, scale: float) -> Generator[None, None, np.ndarray]:
        """The lower triangle of N for the differences of a block, its diagonal scaled."""
        group = self.layout.group[free]
        heads = self.pivot[group]
        d = self.a[free, :rank] - self.a[heads, :rank]
        s = self.a[free, :rank] + self.a[heads, :rank]
        matrix = np.empty((len(free), len(free)))
        for k in range(0, len(free), dense.PIECE):
            end = min(k + dense.PIECE, len(free))
            # In place: the four products of a tile fill the caches as it is.
            out = matrix[k:end, :end]
            np.matmul(d[k:end], d[:end].T, out=out)
            out *= s[k:end] @ s[:end].T
            out += (d[k:end] @ s[:end].T) * (s[k:end] @ d[:end].T)
            yield
        _add_diagonals(matrix, group, self.w[free], self.w[heads], scale)
        return matrix

    def solve(self, r: np.ndarray) -> dense.Solution:
        """Solve (1) for du and dlambda."""
        yield
        layout = self.layout
        group = layout.group
        du = np.zeros(layout.n_rows)
        for free, factor in self.parts:
            du[free] = dense.solve(factor, r[free] - r[self.pivot[group[free]]])
        du[self.pivot] = -np.bincount(group, weights=du, minlength=layout.n_groups)
        bound = r[self.pivot] - du[self.pivot] / self.w[self.pivot]
        for b, rows, rank in layout.blocks():
            a = self.a[rows, :rank]
            change = (a.T * du[rows]) @ a
            heads = self.pivot[layout.block[self.pivot] == b]
            at = self.a[heads, :rank]
            bound[group[heads]] -= np.einsum("ij,ij->i", at @ change, at)
        return du, bound


@kernel
def _add_diagonals(matrix, group, w, w_pivot, scale):
    """Halve the lower triangle and add 1 / w_p within groups and 1 / w on the diagonal. Overwrites matrix.

    Rows of a group are adjacent.
    """
    for i in range(len(matrix)):
        for j in range(i + 1):
            matrix[i, j] *= 0.5
        j = i
        while j >= 0 and group[j] == group[i]:
            matrix[i, j] += 1.0 / w_pivot[i]
            j -= 1
        matrix[i, i] = scale * matrix[i, i] + 1.0 / w[i]
