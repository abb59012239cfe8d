"""Efficiencies of a design against the best design on its candidates: lower bounds for D, G, A and I."""

from __future__ import annotations

import numpy as np

from optdesign.design.certificate import certify
from optdesign.design.efficiency import efficiency
from optdesign.evaluation.estimation import least_squares
from optdesign.evaluation.experiment import Experiment
from optdesign.evaluation.linear_criteria import Block, efficiency_bound
from optdesign.problem.problem import DesignProblem
from optdesign.solvers.solve import solve


def d_bound(x: Experiment) -> float:
    """Return a lower bound on the D-efficiency against all designs on the candidates."""
    problem = _problem(x)
    return 0.0 if problem is None else efficiency(problem, x.pool_weights, best=solve(problem))


def g_bound(x: Experiment) -> float:
    """Return a lower bound on the G-efficiency against all designs on the candidates."""
    problem = _problem(x)
    if problem is None:
        return 0.0
    found = certify(problem, x.pool_weights)
    return found.g_efficiency if np.isfinite(found.gap) else 0.0


def _problem(x: Experiment) -> DesignProblem | None:
    """Return the problem of the candidates with the budgets of the weights, or None if one is 0."""
    budgets = np.bincount(x.pool_groups, x.pool_weights)
    return DesignProblem(x.pool, x.pool_groups, x.pool_blocks, budgets) if np.all(budgets > 0) else None


class SpannedCandidates:
    """Candidates of an experiment in coordinates of their span, by parameter block.

    If the candidates determine all coefficients, these are the features. Otherwise they are coordinates in an
    orthonormal basis of the span, in which the trace of the inverse is that of the pseudo-inverse.
    """

    def __init__(self, x: Experiment) -> None:
        owns = x.by_block(x.pool_blocks)
        self.bases = [_basis(x.pool[own]) for own in owns]
        """(d, rank), the identity if the rank is full."""
        self.rows = [x.pool[own] @ basis for own, basis in zip(owns, self.bases, strict=True)]
        self.groups = [x.pool_groups[own] for own in owns]
        self.weights = [x.pool_weights[own] for own in owns]
        self.budgets = np.bincount(x.pool_groups, x.pool_weights)

    @property
    def rank(self) -> int:
        """Sum of the ranks of the parameter blocks."""
        return sum(basis.shape[1] for basis in self.bases)

    def bound(self, region: Experiment | None) -> float:
        """Return a lower bound on the I-efficiency for a region, or on the A-efficiency."""
        identities = [np.eye(basis.shape[1]) for basis in self.bases]
        roots = identities if region is None else self._regions(region)
        if roots is None:
            return np.nan
        blocks = [Block(*parts) for parts in zip(self.rows, self.groups, roots, strict=True)]
        fits = [least_squares(rows, w) for rows, w in zip(self.rows, self.weights, strict=True)]
        if any(fit.rank < block.rows.shape[1] for fit, block in zip(fits, blocks, strict=True)):
            return 0.0
        return efficiency_bound(blocks, self.weights, [fit.root for fit in fits], self.budgets)

    def _regions(self, x: Experiment) -> list[np.ndarray] | None:
        """Return roots of the average of x x' over the region; None if a row is outside the span."""
        roots = []
        for basis, own in zip(self.bases, x.by_block(x.region_blocks), strict=True):
            rows = x.region[own] @ basis
            outside = np.linalg.norm(x.region[own] - rows @ basis.T, axis=1)
            if np.any(outside > 1e-7 * np.linalg.norm(x.region[own], axis=1)):
                return None
            roots.append(np.asarray(np.linalg.qr(rows / np.sqrt(len(x.region)), mode="r")).T)
        return roots


def _basis(rows: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the row space, the identity if it is the whole space."""
    rank = least_squares(rows, np.ones(len(rows))).rank
    if rank == rows.shape[1]:
        return np.eye(rank)
    return np.linalg.svd(np.linalg.qr(rows, mode="r"))[2][:rank].T
