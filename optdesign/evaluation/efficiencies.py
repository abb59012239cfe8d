"""Efficiencies of a design against the best design on its candidates: lower bounds for D, G, A and I."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optdesign.design.certificate import certify, rows_of_size_one
from optdesign.design.efficiency import efficiency
from optdesign.design.measures import stretch
from optdesign.evaluation.estimation import Fit, least_squares
from optdesign.evaluation.experiment import Experiment
from optdesign.evaluation.linear_criteria import Block, efficiency_bound
from optdesign.factors.coding import span_rtol
from optdesign.numbers.roundoff import ROUNDOFF
from optdesign.problem.problem import DesignProblem
from optdesign.solvers.solve import solve


def largest_variances(x: Experiment, fits: tuple[Fit, ...], n_groups: int) -> np.ndarray:
    """Return the largest variance of a candidate in every group."""
    largest = np.zeros(n_groups)
    for fit, own in zip(fits, x.by_block(x.pool_blocks), strict=True):
        np.maximum.at(largest, x.pool_groups[own], fit.variances(x.pool[own]))
    return largest


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


@dataclass(frozen=True, eq=False)
class SpannedCandidates:
    """Candidates in coordinates of their span, by parameter block.

    If the candidates determine all coefficients, these are the features. Otherwise they are coordinates in an
    orthonormal basis of the span of the features in columns of length 1.
    """

    rows: list[np.ndarray]
    groups: list[np.ndarray]
    weights: list[np.ndarray]
    bases: list[np.ndarray]
    """(d, rank), the identity if the rank is full."""
    lengths: list[np.ndarray]
    """Powers of 2 near the lengths of the columns, 1 if the rank is full."""
    rtols: list[float]
    """Parts of a row outside of the span that count as round-off."""
    budgets: np.ndarray

    @property
    def rank(self) -> int:
        """Sum of the ranks of the parameter blocks."""
        return sum(basis.shape[1] for basis in self.bases)

    @classmethod
    def of(cls, x: Experiment) -> SpannedCandidates:
        """Return the candidates of an experiment."""
        owns = x.by_block(x.pool_blocks)
        spans = [_basis(x.pool[own]) for own in owns]
        return cls(
            rows=[_coordinates(x.pool[own], *span[:2]) for own, span in zip(owns, spans, strict=True)],
            groups=[x.pool_groups[own] for own in owns],
            weights=[x.pool_weights[own] for own in owns],
            bases=[basis for basis, _, _ in spans],
            lengths=[lengths for _, lengths, _ in spans],
            rtols=[rtol for _, _, rtol in spans],
            budgets=np.bincount(x.pool_groups, x.pool_weights),
        )

    def bound(self, region: Experiment | None, rank: int) -> float:
        """Return a lower bound on the I-efficiency for a region, or on the A-efficiency.

        ``rank`` is that of the design. Round-off in the coordinates can give their information a larger one.
        """
        found = self._stretches() if region is None else self._regions(region)
        if found is None:
            return np.nan
        roots, exactness = found
        blocks = [Block(*parts) for parts in zip(self.rows, self.groups, roots, strict=True)]
        fits = [least_squares(rows, w) for rows, w in zip(self.rows, self.weights, strict=True)]
        lost = any(fit.rank < block.rows.shape[1] for fit, block in zip(fits, blocks, strict=True))
        if lost or rank < self.rank:
            return 0.0
        return exactness * efficiency_bound(blocks, self.weights, [fit.root for fit in fits], self.budgets)

    def _stretches(self) -> tuple[list[np.ndarray], float]:
        """Return roots of the criterion A, and a factor less than 1 for their round-off.

        The trace of the pseudo-inverse of the information B S B' is that of (B'B)^-1 S^-1. An entry of a
        basis that should be 0 is round-off times the length of its column.
        """
        roots, exactness = [], 1.0
        for basis, lengths in zip(self.bases, self.lengths, strict=True):
            if basis.shape[0] == basis.shape[1]:
                roots.append(np.eye(len(basis)))
                continue
            roots.append(stretch(basis * lengths[:, None])[0])
            used = lengths[np.any(basis != 0, axis=1)]
            ratio = float(used.max(initial=1.0) / used.min(initial=np.inf)) if len(used) else 1.0
            exactness = min(exactness, max(0.0, 1 - ROUNDOFF * len(basis) * ratio))
        return roots, exactness

    def _regions(self, x: Experiment) -> tuple[list[np.ndarray], float] | None:
        """Return roots of the average of x x' over the region and 1; None if a row is outside the span."""
        roots = []
        owns = x.by_block(x.region_blocks)
        for basis, lengths, rtol, own in zip(self.bases, self.lengths, self.rtols, owns, strict=True):
            rows = _coordinates(x.region[own], basis, lengths)
            scaled = rows_of_size_one(x.region[own] / lengths)
            outside = np.linalg.norm(scaled - scaled @ basis @ basis.T, axis=1)
            if np.any(outside > rtol * np.linalg.norm(scaled, axis=1)):
                return None
            roots.append(np.asarray(np.linalg.qr(rows / np.sqrt(len(x.region)), mode="r")).T)
        return roots, 1.0


def _coordinates(rows: np.ndarray, basis: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return rows if basis.shape[0] == basis.shape[1] else (rows / lengths) @ basis


def _basis(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return an orthonormal basis of the row space in columns of length 1, the lengths, and its round-off.

    They are the identity, ones and 0 if the basis is that of the whole space.
    """
    d = rows.shape[1]
    rank = least_squares(rows, np.ones(len(rows))).rank
    if rank == d:
        return np.eye(d), np.ones(d), 0.0
    lengths = np.ldexp(1.0, np.frexp(np.abs(rows).max(axis=0, initial=0.0))[1])
    _, values, right = np.linalg.svd(np.linalg.qr(rows / lengths, mode="r"))
    return right[:rank].T, lengths, span_rtol(values[:rank])
