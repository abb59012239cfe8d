"""Where to start when groups have many candidates.

From the uniform design every candidate that is not needed has to be taken out again, one by one. Candidates
of high leverage make a better start: those with the largest variances under the uniform design, or under
the information of a sample.
"""

from __future__ import annotations

import numpy as np

from optdesign._kernel import kernel
from optdesign.information import factorise
from optdesign.passes import compose, information_matrices, variances_of
from optdesign.problem import DesignProblem

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
"""Weights on up to this many times the candidates that an optimum needs count as sparse; more candidates in
all are far more than needed."""

LEVERAGE = (0.6, 0.7, 0.8, 0.9)
THINNED = 50
"""The start has the candidates of at least this fraction of their group's largest leverage: the first
fraction that leaves no more than THINNED times the candidates that an optimum needs."""


def many_candidates(problem: DesignProblem) -> bool:
    """Whether groups are large and there are far more candidates than an optimum needs."""
    return problem.n_candidates > MANY * problem.n_groups and _far_more(problem)


def _far_more(problem: DesignProblem) -> bool:
    """Whether there are far more candidates than an optimum needs."""
    return problem.n_candidates > ROOM * problem.enough


def default_start(problem: DesignProblem) -> np.ndarray:
    """The uniform design, thinned out where there are many candidates, for a group or for its blocks."""
    if many_candidates(problem):
        return thinned(problem)
    if problem.n_candidates >= CROWDED * problem.n_groups * problem.n_blocks and _far_more(problem):
        return _leaders(problem, problem.uniform(), np.arange(problem.n_candidates), (1.0,))
    return problem.uniform()


def thinned(problem: DesignProblem) -> np.ndarray:
    """Uniform weights on the candidates of high leverage in their group, and on a basis of every block."""
    n = problem.n_candidates
    if n <= SMALL and problem.n_groups == 1:
        return _shared_equally(problem, _basis(problem))
    sample = np.concatenate([np.arange(0, n, max(1, n // (SAMPLE * problem.enough))), _basis(problem)])
    return _leaders(problem, problem.uniform()[sample], sample, LEVERAGE)


def _leaders(
    problem: DesignProblem, weights: np.ndarray, rows: np.ndarray, levels: tuple[float, ...]
) -> np.ndarray:
    """Weights on a basis and on the candidates of high leverage under the weights of some rows.

    High is the first level, as a fraction of the group's largest leverage, that leaves few enough.
    """
    g, top = priced(problem, rows, weights)
    for level in levels:
        leaders = exceeding(problem.groups, g, level * top)
        if len(leaders) <= THINNED * problem.enough:
            break
    chosen = np.zeros(problem.n_candidates, np.bool_)
    chosen[leaders] = True
    chosen[_basis(problem)] = True
    return _shared_equally(problem, np.flatnonzero(chosen))


def _basis(problem: DesignProblem) -> np.ndarray:
    """The candidates that span the blocks."""
    pivots = problem.span.pivots
    return pivots[pivots >= 0]


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
    factor = np.zeros_like(information)
    if np.all(factorise(information, problem.ranks, factor) > -np.inf):
        white = problem.rows.maps.copy()
        compose(white, problem.ranks, factor)
        return variances_of(problem, problem.rows, white)
    return np.full(problem.n_candidates, np.inf), np.full(problem.n_groups, np.inf)


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
