"""The Newton system without a matrix: preconditioned conjugate gradients on the shares.

A product with H takes one pass over the active rows, (H v)_n = a_n' (sum_m v_m a_m a_m') a_n, so nothing
larger than the rows has to fit. With D the diagonal of H + W^-1, the preconditioner solves

    D du + A' dlambda = r,    A du = 0,

so that all iterates keep the sums of the groups. Steps need not be exact: a residual that is a small fraction
of the right-hand side is taken up by the next step, which starts from the variances as they are.
"""

from __future__ import annotations

import numpy as np

from optdesign.solvers.systems import dense
from optdesign.solvers.systems.layout import Layout

ACCURACY = 1e-2
"""Fraction of the right-hand side, in the norm of the preconditioner, that may be left."""

MOST = 500
"""Most iterations of a solution; what is found by then is taken."""


class ByIteration:
    """No matrix at all."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.order = layout.n_rows
        self.parts: list[tuple[np.ndarray | slice, np.ndarray]]
        self.w: np.ndarray
        self.diagonal: np.ndarray
        self.sums: np.ndarray

    def factorise(self, a: np.ndarray, w: np.ndarray) -> dense.Attempt:
        """Prepare for whitened rows a and the diagonal w of W. Returns whether that succeeded."""
        self.parts = [(rows, np.ascontiguousarray(a[rows, :rank])) for _, rows, rank in self.layout.blocks()]
        self.w = w
        self.diagonal = np.einsum("ij,ij->i", a, a) ** 2 + 1.0 / w
        self.sums = self._sum(1.0 / self.diagonal)
        yield
        return bool(np.all(np.isfinite(self.diagonal)))

    def solve(self, r: np.ndarray) -> dense.Solution:
        """Solve (1) for du and dlambda."""
        du = np.zeros_like(r)
        left = r.copy()
        direction, dbound = self._precondition(left)
        size = first = float(left @ direction)
        step = direction
        for _ in range(MOST):
            if not size > ACCURACY**2 * first:
                break
            product = self._multiply(step)
            yield
            length = size / float(step @ product)
            du += length * step
            left -= length * product
            direction, dbound = self._precondition(left)
            size, before = float(left @ direction), size
            step = direction + (size / before) * step
        return du, dbound

    def _multiply(self, v: np.ndarray) -> np.ndarray:
        """(H + W^-1) v."""
        out = v / self.w
        for rows, a in self.parts:
            change = (a.T * v[rows]) @ a
            out[rows] += np.einsum("ij,ij->i", a @ change, a)
        return out

    def _precondition(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The solution of the preconditioner, and its dlambda."""
        scaled = r / self.diagonal
        dbound = self._sum(scaled) / self.sums
        return scaled - dbound[self.layout.group] / self.diagonal, dbound

    def _sum(self, v: np.ndarray) -> np.ndarray:
        """Sums over groups."""
        return np.add.reduceat(v, self.layout.starts[:-1])
