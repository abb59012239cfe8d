"""Where to start when groups have many candidates.

From the uniform design every candidate that is not needed has to be taken out again, one by one. Candidates
of high leverage make a better start: those with the largest variances under the information of a sample.
"""

from __future__ import annotations

import numpy as np

from optdesign._kernel import kernel
from optdesign.certificate import all_variances, information_matrices
from optdesign.information import factorise
from optdesign.problem import DesignProblem

MANY = 64
"""Candidates a group, on average, above which a uniform start is thinned out."""

SMALL = 2000
"""Up to this many candidates in a single group, a basis is start enough."""

SAMPLE = 100
"""Leverages are ranked by the information of this many times the candidates that an optimum needs."""

ROOM = 6
"""Weights on up to this many times the candidates that an optimum needs count as sparse."""

LEVERAGE = (0.6, 0.7, 0.8, 0.9)
THINNED = 50
"""The start has the candidates of at least this fraction of their group's largest leverage: the first
fraction that leaves no more than THINNED times the candidates that an optimum needs."""


def many_candidates(problem: DesignProblem) -> bool:
    """Whether groups are large and there are far more candidates than an optimum needs."""
    n = problem.n_candidates
    return n > MANY * problem.n_groups and n > ROOM * problem.enough


def default_start(problem: DesignProblem) -> np.ndarray:
    """The uniform design, thinned out where there are many candidates."""
    return thinned(problem) if many_candidates(problem) else problem.uniform()


def thinned(problem: DesignProblem) -> np.ndarray:
    """Uniform weights on the candidates of high leverage in their group, and on a basis of every block."""
    n = problem.n_candidates
    weights = problem.uniform()
    basis = problem.span.pivots[problem.span.pivots >= 0]
    if n <= SMALL and problem.n_groups == 1:
        return _shared_equally(problem, basis)
    stride = max(1, n // (SAMPLE * problem.enough))
    sample = np.concatenate([np.arange(0, n, stride), basis])
    g, top = priced(problem, sample, weights[sample])
    for level in LEVERAGE:
        rows = exceeding(problem.groups, g, level * top)
        if len(rows) <= THINNED * problem.enough:
            break
    return _shared_equally(problem, np.union1d(rows, basis))


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
        return all_variances(problem, factor, quick=True)
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
