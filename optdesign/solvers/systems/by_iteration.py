"""The Newton system without a matrix: preconditioned conjugate gradients on the shares.

A product with H takes one pass over the active rows, (H v)_n = a_n' (sum_m v_m a_m a_m') a_n, so nothing
larger than the rows has to fit. With D the diagonal of H + W^-1, the preconditioner solves

    D du + A' dlambda = r,    A du = 0,

so that all iterates keep the sums of the groups. Steps need not be exact: a residual that is a small fraction
of the right-hand side is taken up by the next step, which starts from the variances as they are.

Two things follow from that. Single precision is enough for the products, while residuals are summed up in
double. With e_n = a_n / |a_n| and v scaled to its largest entry,

    (H v)_n = g_n e_n' (sum_m g_m v_m e_m e_m') e_n,

so nothing overflows, and rows of small variance keep their digits. And the corrector, whose right-hand side
is the predictor's and the term that centres, starts from where the predictor ended.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign.runtime.stopping import raise_if_stopped
from optdesign.solvers.systems.layout import Layout


class Parameters(NamedTuple):
    """When the iteration for a solution ends."""

    residual: float = 1e-2
    """Largest residual, as a fraction of the right-hand side in the norm of the preconditioner."""
    max_products: int = 500
    """Largest number of products. The solution found by then is used."""


PARAMETERS = Parameters()


class ByIteration:
    """Conjugate gradients. A step, which has two solutions, may take ``products`` products."""

    def __init__(self, layout: Layout, products: float = np.inf) -> None:
        self.layout = layout
        self.most = int(min(products / 2, PARAMETERS.max_products))
        self.order = int(layout.ranks.max())
        self.parts: list[tuple[np.ndarray | slice, np.ndarray]]
        self.w: np.ndarray
        self.g: np.ndarray
        self.diagonal: np.ndarray
        self.sums: np.ndarray
        # The last solution for these rows, and its product with the matrix up to A' dlambda.
        self.found: tuple[np.ndarray, np.ndarray]
        self.exceeds_budget = False
        """True once a solution has taken all its products and a matrix would be faster."""

    def factorise(self, a: np.ndarray, w: np.ndarray) -> bool:
        """Prepare for whitened rows a and the diagonal w of W. Returns False if a number is not finite."""
        self.w, self.g = w, np.einsum("ij,ij->i", a, a)
        unit = a / np.sqrt(np.where(self.g > 0, self.g, 1.0))[:, None]
        self.parts = [(rows, unit[rows, :rank].astype(np.float32)) for _, rows, rank in self.layout.blocks()]
        self.diagonal = self.g**2 + 1.0 / w
        self.sums = self._sum(1.0 / self.diagonal)
        self.found = np.zeros_like(w), np.zeros_like(w)
        return bool(np.all(np.isfinite(self.diagonal)))

    def solve(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the solution du and dlambda of (1), iterated from the last solution."""
        enough = PARAMETERS.residual**2 * float(r @ self._precondition(r)[0])
        du, product = self.found[0].copy(), self.found[1]
        left = r - product
        direction, dbound = self._precondition(left)
        size = float(left @ direction)
        step = direction
        for _ in range(self.most):
            if not size > enough:
                break
            raise_if_stopped()
            product = self._multiply(step)
            length = size / float(step @ product)
            du += length * step
            left -= length * product
            direction, dbound = self._precondition(left)
            size, before = float(left @ direction), size
            step = direction + (size / before) * step
        else:
            self.exceeds_budget = self.most < PARAMETERS.max_products
        self.found = du, r - left
        return du, dbound

    def _multiply(self, v: np.ndarray) -> np.ndarray:
        """Return (H + W^-1) v."""
        scaled = self.g * v
        largest = float(np.abs(scaled).max()) or 1.0
        single, out = (scaled / largest).astype(np.float32), np.empty(len(v), np.float32)
        for rows, e in self.parts:
            change = (e.T * single[rows]) @ e
            out[rows] = np.einsum("ij,ij->i", e @ change, e)
        return largest * self.g * out + v / self.w

    def _precondition(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the solution of the preconditioner, and its dlambda."""
        scaled = r / self.diagonal
        dbound = self._sum(scaled) / self.sums
        return scaled - dbound[self.layout.group] / self.diagonal, dbound

    def _sum(self, v: np.ndarray) -> np.ndarray:
        """Return the sums over groups."""
        return np.add.reduceat(v, self.layout.starts[:-1])
