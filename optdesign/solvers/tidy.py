"""Remove weights that the certificate does not need.

At a gap of tol * rank, candidates near the support of an optimum may keep small weights, hundreds of them on
a fine grid, and equal candidates of a group may share a weight. Equal candidates are merged, candidates of
small weight are dropped, and the weights of the others are optimised. The result is used if its certificate
over all candidates meets the same goal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign.algebra.passes import raise_to_largest
from optdesign.algebra.reduced import reduce
from optdesign.design.certificate import Certificate, rescale_and_certify
from optdesign.design.feasible import scale
from optdesign.problem.problem import DesignProblem
from optdesign.solvers import newton


class Thresholds(NamedTuple):
    """Weights that are dropped, as fractions of the largest weight of their group."""

    negligible: float = newton.PARAMETERS.negligible
    """Weights up to this fraction are dropped."""
    redundant: float = 1e-2
    """Weights up to this fraction are dropped if more candidates have weight than an optimum needs."""


THRESHOLDS = Thresholds()


def tidied(
    problem: DesignProblem, weights: np.ndarray, certificate: Certificate, goal: float
) -> tuple[np.ndarray, Certificate]:
    """Return weights on fewer candidates with a gap of at most ``goal``, and their certificate.

    Returns the given weights if no candidate can be removed.
    """
    while True:
        smaller = _reduce_support(problem, weights, certificate, goal)
        if smaller is None:
            return weights, certificate
        weights, certificate = smaller


def _reduce_support(
    problem: DesignProblem, weights: np.ndarray, certificate: Certificate, goal: float
) -> tuple[np.ndarray, Certificate] | None:
    """Merge equal candidates, drop those of small weight and optimise the weights of the others.

    Returns the new weights and their certificate, or None if there is nothing to remove or the gap exceeds
    the goal.
    """
    support = np.flatnonzero(weights)
    if len(support) == problem.n_groups:  # one candidate per group is the minimum
        return None
    groups, largest = problem.groups[support], np.zeros(problem.n_groups)
    raise_to_largest(groups, weights[support], largest)
    merged = _merge_equal(problem, support, weights[support], certificate.variances[support])
    redundant = (THRESHOLDS.redundant,) if len(support) > problem.support_bound else ()
    for threshold in (*redundant, THRESHOLDS.negligible, 0.0):  # 0 merges equal candidates only
        kept = merged > threshold * largest[groups]
        if kept.all():  # and a smaller threshold keeps all as well
            return None
        fewer = np.zeros(problem.n_candidates)
        fewer[support[kept]] = merged[kept]
        _optimise(problem, support[kept], fewer, goal)
        fewer, new_certificate = rescale_and_certify(problem, fewer)
        if new_certificate.gap <= goal:
            return fewer, new_certificate
    return None


def _optimise(problem: DesignProblem, rows: np.ndarray, weights: np.ndarray, goal: float) -> None:
    """Take Newton steps on the candidates with weight, whose rows are given. Overwrites weights.

    The steps go beyond the goal, so that the certificate, which includes round-off, meets it.
    """
    scale(problem.groups, problem.budgets, weights)
    reduced = reduce(problem, rows)
    u = reduced.restrict(weights)
    for _ in newton.run(reduced, u, newton.PARAMETERS.overshoot * goal):
        pass
    reduced.extend(u, weights)


def _merge_equal(
    problem: DesignProblem, support: np.ndarray, weights: np.ndarray, variances: np.ndarray
) -> np.ndarray:
    """Return the weights of supported candidates, with the total of equal ones on the first of them."""
    cell = problem.groups[support] * problem.n_parameter_blocks + problem.parameter_blocks[support]
    # Equal candidates have the same computed variance, so most designs need no comparison of rows. If they
    # had not, only a merge would be missed.
    if len(set(zip(cell.tolist(), variances.tolist(), strict=True))) == len(support):
        return weights
    merged = np.zeros(len(weights))
    first_equal: dict[tuple[float, ...], int] = {}
    for k, row in enumerate(np.column_stack([cell, problem.rows.source.take(support)]).tolist()):
        merged[first_equal.setdefault(tuple(row), k)] += weights[k]
    return merged
