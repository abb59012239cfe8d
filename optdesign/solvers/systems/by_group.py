"""The Newton system by candidates, block by block, and a Schur complement over groups.

H + W^-1 is block diagonal over blocks. Each is factorised, then the n_groups x n_groups Schur complement
A (H + W^-1)^-1 A'.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg.blas import dsyrk

from optdesign._kernel import kernel
from optdesign.solvers.systems import dense
from optdesign.solvers.systems.layout import Layout


class ByGroup:
    """One matrix a block and one Schur complement over groups."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.group = layout.group
        self.order = max(layout.n_groups, int(layout.sizes.max()))
        self.factors: list[np.ndarray] = []
        self.schur: np.ndarray

    def factorise(self, a: np.ndarray, w: np.ndarray) -> dense.Attempt:
        """Prepare for whitened rows a and the diagonal w of W. Returns whether that succeeded."""
        for ridge in dense.ridges():
            if (yield from self._factorise(a, w, ridge)):
                return True
        return False

    def _factorise(self, a: np.ndarray, w: np.ndarray, ridge: float) -> dense.Attempt:
        m = self.layout.n_groups
        self.factors, self.schur = [], np.zeros((m, m))
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
            yield from self._complement(matrix, self.group[rows])
        self.schur.ravel()[:: m + 1] *= 1.0 + ridge
        return (yield from dense.cholesky(self.schur))

    def _complement(self, factor: np.ndarray, group: np.ndarray) -> Iterator[None]:
        """Add what a block contributes to the Schur complement."""
        present = np.unique(group)
        if 3 * len(present) <= len(group):  # as many columns take no longer than an inverse
            sums = (present[:, None] == group).astype(float)
            part = sums @ dense.solve(factor, sums.T)
            self.schur[np.ix_(present, present)] += part
        else:
            inverse = factor.copy()
            dense.inverse(inverse)
            yield
            _add_up(inverse, group, self.schur)

    def solve(self, r: np.ndarray) -> dense.Solution:
        """Solve (1) for du and dlambda."""
        yield
        m = self.layout.n_groups
        t = self._block_solve(r)
        dbound = dense.solve(self.schur, np.bincount(self.group, weights=t, minlength=m))
        return self._block_solve(r - dbound[self.group]), dbound

    def _block_solve(self, r: np.ndarray) -> np.ndarray:
        """Solve (H + W^-1) t = r."""
        t = np.empty_like(r)
        for (_, rows, _), factor in zip(self.layout.blocks(), self.factors, strict=True):
            t[rows] = dense.solve(factor, r[rows])
        return t


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
    for i in range(len(inverse)):
        for j in range(i):
            if group[i] == group[j]:
                schur[group[i], group[i]] += 2.0 * inverse[i, j]
            elif group[i] > group[j]:
                schur[group[i], group[j]] += inverse[i, j]
            else:
                schur[group[j], group[i]] += inverse[i, j]
        schur[group[i], group[i]] += inverse[i, i]
