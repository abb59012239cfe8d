"""The Newton system by candidates, block by block, and a Schur complement over groups.

H + W^-1 is block diagonal over blocks. Each is factorised by LAPACK, then the n_groups x n_groups Schur
complement A (H + W^-1)^-1 A'.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyrk

from optdesign.runtime.jit import kernel
from optdesign.runtime.stopping import raise_if_stopped
from optdesign.solvers.systems import dense
from optdesign.solvers.systems.layout import Layout


class ByGroup:
    """One matrix per block and one Schur complement over groups."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.group = layout.group
        self.order = max(layout.n_groups, layout.largest)
        self.factors: list[np.ndarray]
        self.schur: np.ndarray

    def factorise(self, a: np.ndarray, w: np.ndarray) -> bool:
        """Prepare for whitened rows a and the diagonal w of W. Returns False if a matrix is singular."""
        m = self.layout.n_groups
        for ridge in dense.RIDGES:
            self.factors, self.schur = [], np.zeros((m, m))
            if self._factorise_blocks(a, w, ridge):
                self.schur.ravel()[:: m + 1] *= 1.0 + ridge
                if dense.cholesky(self.schur):
                    return True
        return False

    def solve(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the solution du and dlambda of (1)."""
        sums = np.bincount(self.group, weights=self._solve_blocks(r), minlength=self.layout.n_groups)
        dbound = dense.solve(self.schur, sums)
        return self._solve_blocks(r - dbound[self.group]), dbound

    def _factorise_blocks(self, a: np.ndarray, w: np.ndarray, ridge: float) -> bool:
        """Factorise the blocks of H + W^-1 and add their terms to the Schur complement."""
        for _, rows, rank in self.layout.blocks():
            part = np.ascontiguousarray(a[rows, :rank])
            matrix = np.zeros((len(part), len(part)))
            if rank:
                dsyrk(1.0, part.T, trans=1, c=matrix.T, overwrite_c=1, lower=0)
            raise_if_stopped()
            _square(matrix, 1.0 + ridge, w[rows])
            if not dense.cholesky(matrix):
                return False
            self.factors.append(matrix)
            _add_to_schur(matrix, self.group[rows], self.schur)
        return True

    def _solve_blocks(self, r: np.ndarray) -> np.ndarray:
        """Return the solution t of (H + W^-1) t = r."""
        t = np.empty_like(r)
        for (_, rows, _), factor in zip(self.layout.blocks(), self.factors, strict=True):
            t[rows] = dense.solve(factor, r[rows])
        return t


def _add_to_schur(factor: np.ndarray, group: np.ndarray, schur: np.ndarray) -> None:
    """Add the term of a block, given its factor, to the Schur complement. Overwrites schur."""
    present = np.unique(group)
    if 3 * len(present) <= len(group):  # solving for so few columns is faster than an inverse
        sums = (present[:, None] == group).astype(float)
        part = sums @ dense.solve(factor, sums.T)
        schur[np.ix_(present, present)] += part
    else:
        inverse = factor.copy()
        dense.inverse(inverse)
        add_by_group(inverse, group, schur)


@kernel
def _square(matrix, scale, w):
    """Overwrite the lower triangle of a Gram matrix with its squares, the diagonal times scale plus 1 / w."""
    for i in range(len(matrix)):
        for j in range(i + 1):
            matrix[i, j] *= matrix[i, j]
        matrix[i, i] = scale * matrix[i, i] + 1.0 / w[i]


@kernel
def add_by_group(inverse, group, schur):
    """Add the entries of a symmetric matrix of candidates to those of their groups. Overwrites schur.

    Lower triangles are read and written.
    """
    for i in range(len(group)):
        for j in range(i):
            if group[i] == group[j]:
                schur[group[i], group[i]] += 2.0 * inverse[i, j]
            elif group[i] > group[j]:
                schur[group[i], group[j]] += inverse[i, j]
            else:
                schur[group[j], group[i]] += inverse[i, j]
        schur[group[i], group[i]] += inverse[i, i]
