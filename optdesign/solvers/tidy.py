"""Remove weights that the certificate does not need.

At a gap of tol * rank, candidates near the support of an optimum may keep small weights, by the hundred on a
fine grid. Equal candidates of a group may share a weight. Both are removed: equal candidates are merged,
candidates of small weight are dropped, and the weights of each group are rescaled to its budget. The result
is used if its certificate over all candidates meets the same goal.
"""

from __future__ import annotations

import numpy as np

from optdesign.algebra.passes import raise_to_largest
from optdesign.algebra.reduced import reduce
from optdesign.design.certificate import Certificate, scale, settled
from optdesign.problem.problem import DesignProblem
from optdesign.runtime.stopping import raise_if_stopped
from optdesign.solvers import newton

NEGLIGIBLE, SMALL = 1e-4, 1e-2
"""Fractions of the largest weight of a group. Weights up to the first are dropped if the certificate allows
it. Weights up to the second are dropped as well if more candidates have weight than an optimum needs."""


def tidied(
    problem: DesignProblem, weights: np.ndarray, certificate: Certificate, goal: float
) -> tuple[np.ndarray, Certificate]:
    """Return weights on fewer candidates with a gap of at most ``goal``, and their certificate.

    The given weights are returned if there are none.
    """
    while True:
        fewer = _fewer(problem, weights, certificate, goal)
        if fewer is None:
            return weights, certificate
        weights, certificate = fewer


def _fewer(
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
    too_many = len(support) > problem.enough
    for threshold in (SMALL, NEGLIGIBLE, 0.0) if too_many else (NEGLIGIBLE, 0.0):
        kept = merged > threshold * largest[groups]
        if kept.all():
            return None
        fewer = np.zeros(problem.n_candidates)
        fewer[support[kept]] = merged[kept]
        _optimise(problem, support[kept], fewer, goal)
        fewer, proof = settled(problem, fewer)
        if proof.gap <= goal:
            return fewer, proof
    return None


def _optimise(problem: DesignProblem, rows: np.ndarray, weights: np.ndarray, goal: float) -> None:
    """Take Newton steps on the candidates with weight, whose rows are given. Overwrites weights."""
    scale(problem.groups, problem.budgets, weights)
    reduced = reduce(problem, rows)
    u = reduced.restrict(weights)
    for _ in newton.run(reduced, u, newton.PARAMETERS.overshoot * goal):
        raise_if_stopped()
    reduced.extend(u, weights)


def _merge_equal(
    problem: DesignProblem, support: np.ndarray, weights: np.ndarray, variances: np.ndarray
) -> np.ndarray:
    """Return the weights of supported candidates, with the total of equal ones on the first of them."""
    place = problem.groups[support] * problem.n_parameter_blocks + problem.parameter_blocks[support]
    # Equal candidates have equal variances, so most designs need no comparison of rows.
    if len(set(zip(place.tolist(), variances.tolist(), strict=True))) == len(support):
        return weights
    merged = np.zeros(len(weights))
    first_equal: dict[tuple[float, ...], int] = {}
    for k, row in enumerate(np.column_stack([place, problem.rows.source.take(support)]).tolist()):
        merged[first_equal.setdefault(tuple(row), k)] += weights[k]
    return merged
