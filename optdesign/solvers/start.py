"""Where to start when groups have many candidates.

From the uniform design every candidate that is not needed has to be taken out again, one by one. Candidates
of high leverage make a better start: those with the largest variances under the uniform design, or under
the information of a sample.
"""

from __future__ import annotations

import numpy as np

from optdesign._kernel import kernel
from optdesign.passes import composed, information_matrices, inverse_factors, variances_of
from optdesign.problem import DesignProblem
from optdesign.solvers.costs import pass_time, step_time

MANY = 64
"""Candidates a group, on average, above which a uniform start is thinned out."""

CROWDED = 8
"""Candidates a group and block, on average, from which on a group starts from its candidate of highest
leverage."""

SMALL = 2000
"""Up to this many candidates in a single group, a basis is start enough."""

SAMPLE = 100
"""Leverages are ranked by the information of this many times the candidates that an optimum needs."""

ROOM = 6
"""More than so many times the candidates that an optimum needs, or that a start may have, are far more."""

LEVERAGE = 0.6
"""The start has the candidates of at least this fraction of their group's largest leverage,"""
PASSES = 3
"""and no more than a Newton step can handle in the time of so many passes over all."""


def many_candidates(problem: DesignProblem) -> bool:
    """Whether groups are large and there are far more candidates than an optimum needs."""
    return problem.n_candidates > MANY * problem.n_groups and _far_more(problem)


def _far_more(problem: DesignProblem) -> bool:
    """Whether there are far more candidates than an optimum needs."""
    n = problem.n_candidates
    return n > ROOM * problem.enough or n > ROOM * most(problem)


def most(problem: DesignProblem) -> int:
    """How many candidates a start may have."""
    allowed = PASSES * pass_time(problem)
    least, most = 4 * (problem.rank + problem.n_groups), problem.n_candidates
    while most - least > 1:
        middle = (least + most) // 2
        if step_time(problem, middle, problem.n_groups) <= allowed:
            least = middle
        else:
            most = middle
    return least


def default_start(problem: DesignProblem) -> np.ndarray:
    """The uniform design, thinned out where there are many candidates, for a group or for its blocks."""
    if many_candidates(problem):
        return thinned(problem)
    if problem.n_candidates >= CROWDED * problem.n_groups * problem.n_blocks and _far_more(problem):
        return _leaders(problem, problem.uniform(), np.arange(problem.n_candidates), 1.0)
    return problem.uniform()


def thinned(problem: DesignProblem) -> np.ndarray:
    """Uniform weights on the candidates of high leverage in their group, and on a basis of every block."""
    n = problem.n_candidates
    if n <= SMALL and problem.n_groups == 1:
        return _shared_equally(problem, problem.basis)
    sample = np.concatenate([np.arange(0, n, max(1, n // (SAMPLE * problem.enough))), problem.basis])
    return _leaders(problem, problem.uniform()[sample], sample, LEVERAGE)


def _leaders(problem: DesignProblem, weights: np.ndarray, rows: np.ndarray, level: float) -> np.ndarray:
    """Weights on a basis and on the candidates of high leverage under the weights of some rows.

    High is the given fraction of the group's largest leverage, or a larger one if that leaves too many.
    """
    g, top = priced(problem, rows, weights)
    leaders = exceeding(problem.groups, g, level * top)
    count = most(problem)
    if len(leaders) > count:
        peak = top[problem.groups[leaders]]
        share = np.divide(g[leaders], peak, out=np.zeros(len(leaders)), where=peak > 0)
        leaders = leaders[np.argpartition(-share, count)[:count]]
    chosen = np.zeros(problem.n_candidates, np.bool_)
    chosen[leaders] = True
    chosen[problem.basis] = True
    # However many tie: no group is left without a candidate.
    chosen[first_largest(problem.groups, g, problem.n_groups)] = True
    return _shared_equally(problem, np.flatnonzero(chosen))


def _shared_equally(problem: DesignProblem, rows: np.ndarray) -> np.ndarray:
    """Weights that share each group's budget equally between some of its candidates."""
    groups = problem.groups[rows]
    count = np.bincount(groups, minlength=problem.n_groups)
    out = np.zeros(problem.n_candidates)
    out[rows] = (problem.budgets / count)[groups]
    return out


def priced(problem: DesignProblem, rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variance of every candidate, and the largest of every group, under the weights of some rows.

    All are infinite if the weights lose rank.
    """
    information = information_matrices(problem, weights, rows)
    factor, log_det = inverse_factors(information, problem.ranks)
    if np.all(log_det > -np.inf):
        return variances_of(problem, problem.rows, composed(problem.rows.maps, problem.ranks, factor))
    return np.full(problem.n_candidates, np.inf), np.full(problem.n_groups, np.inf)


@kernel
def first_largest(groups, values, n_groups):
    """The first candidate of every group that has its largest value."""
    out = np.empty(n_groups, np.int64)
    for i in range(n_groups):
        out[i] = -1
    for n in range(len(values)):
        if out[groups[n]] < 0 or values[n] > values[out[groups[n]]]:
            out[groups[n]] = n
    return out


@kernel
def exceeding(groups, values, threshold):
    """Indices of the values that reach the threshold of their group, in order."""
    count = 0
    for n in range(len(values)):
        count += values[n] >= threshold[groups[n]]
    out = np.empty(count, np.int64)
    count = 0
    for n in range(len(values)):
        if values[n] >= threshold[groups[n]]:
            out[count] = n
            count += 1
    return out
