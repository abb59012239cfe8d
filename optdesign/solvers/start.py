"""Where to start when groups have many candidates.

From the uniform design every candidate that is not needed has to be taken out again, one by one. Candidates
of high leverage make a better start: those with the largest variances under the uniform design of a sample.
"""

from __future__ import annotations

import numpy as np

from optdesign.algebra.blocks import WIDE
from optdesign.algebra.passes import above
from optdesign.algebra.whitening import measured
from optdesign.numbers.roundoff import UNIT
from optdesign.problem.problem import DesignProblem
from optdesign.runtime.jit import kernel
from optdesign.solvers import ROUNDING
from optdesign.solvers.costs import pass_time, steps_time, sweeps_time

CROWDED = 8
"""Many candidates are so many times the dimensions and groups, and so many in a group and block, on average.
Of a start and of the sample that ranks leverages, so many times what is needed is enough."""

EVEN = 0.1
"""A uniform design with this relative gap, or less, is not thinned: leverages do not tell who matters."""

SMALL = 2000
"""Up to this many candidates in a single group, a basis is start enough."""


def many_candidates(problem: DesignProblem) -> bool:
    """Whether there are many more candidates than an optimum needs, in all and in a group and block."""
    groups = problem.n_groups
    return problem.n_candidates > CROWDED * max(problem.rank + groups, groups * problem.n_parameter_blocks)


def large_groups(problem: DesignProblem) -> bool:
    """Whether besides an optimum has more candidates than there are groups, mostly, and Newton steps on as
    many as it needs take less time than sweeps over all.
    """
    enough, groups = problem.enough, problem.n_groups
    if enough <= 2 * groups or not many_candidates(problem):
        return False
    return steps_time(problem, enough) < sweeps_time(problem, problem.n_candidates, enough)


def most(problem: DesignProblem) -> int:
    """How many candidates a start may have, beside the first of every group and a basis.

    As many as Newton steps can handle in the time of a pass over all, and as an optimum may need, several
    times.
    """
    allowed, groups = pass_time(problem), problem.n_groups
    least = groups + CROWDED * problem.rank
    most = min(problem.n_candidates, groups + CROWDED * (problem.enough - groups))
    if steps_time(problem, least) > allowed:
        return least
    while most - least > 1:
        middle = (least + most) // 2
        if steps_time(problem, middle) <= allowed:
            least = middle
        else:
            most = middle
    return least


def default_start(problem: DesignProblem) -> np.ndarray:
    """The uniform design, or where there are many candidates equal weights on few of them."""
    if not many_candidates(problem):
        return problem.uniform()
    if problem.n_candidates <= SMALL and problem.n_groups == 1:
        # Of low rank it takes longer to look than it may save.
        if problem.largest_rank >= WIDE:
            uniform = problem.uniform()
            leverages = _leverages(problem, np.arange(problem.n_candidates), uniform)
            if _gap(problem, leverages) <= ROUNDING * problem.n_candidates:
                return uniform
        return _shared_equally(problem, problem.basis)
    return thinned(problem)


def thinned(problem: DesignProblem) -> np.ndarray:
    """Uniform weights on a basis of every block and on the candidates of highest leverage in their groups.

    One of every group is enough where an optimum has hardly more, or where it is nearly optimal. Where
    leverages are nearly even it is the uniform design.
    """
    n, large = problem.n_candidates, large_groups(problem)
    every = max(1, n // (CROWDED * problem.enough))
    sample = _sample(problem, every)
    leverages = _leverages(problem, sample, problem.equal_shares[problem.groups[sample]])
    if leverages is None:
        return problem.uniform()
    g, top = leverages
    chosen = np.zeros(n, np.bool_)
    chosen[problem.basis] = True
    if large and every == 1 and _gap(problem, leverages) <= EVEN:
        chosen[first_largest(problem.groups, g, problem.n_groups)] = True
        few = _shared_equally(problem, np.flatnonzero(chosen))
        rows = np.flatnonzero(few)
        nearly = _gap(problem, _leverages(problem, rows, few[rows])) <= EVEN
        return few if nearly else problem.uniform()
    if large:
        chosen[_highest(problem, g, top, every)] = True
    if not large or np.bincount(problem.groups[chosen], minlength=problem.n_groups).min() == 0:
        chosen[first_largest(problem.groups, g, problem.n_groups)] = True
    return _shared_equally(problem, np.flatnonzero(chosen))


def _sample(problem: DesignProblem, every: int) -> np.ndarray:
    """A basis, and every so many candidates."""
    if every == 1:
        return np.arange(problem.n_candidates)
    chosen = np.zeros(problem.n_candidates, np.bool_)
    chosen[::every] = True
    chosen[problem.basis] = True
    return np.flatnonzero(chosen)


def _leverages(
    problem: DesignProblem, rows: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Variances, and the largest of every group, under the weights of some candidates; None without rank."""
    found = measured(problem, problem.rows, rows, weights, attempts=1)
    return (found.g, found.largest) if found.full else None


def _gap(problem: DesignProblem, leverages: tuple[np.ndarray, np.ndarray] | None) -> float:
    """Relative gap of a design, if these are its variances; infinite without any."""
    return np.inf if leverages is None else float(problem.budgets @ leverages[1]) / problem.rank - 1.0


def _highest(problem: DesignProblem, g: np.ndarray, top: np.ndarray, every: int) -> np.ndarray:
    """The candidates whose variance is the largest fraction of the largest in their group, as many as there
    may be, roughly: every so many tell from where on.
    """
    groups, count = problem.groups, most(problem)
    every = min(every, max(1, count // CROWDED))  # several of the sample are among them
    sample = _fractions(groups[::every], g[::every], top)
    rank = 1 + count * len(sample) // len(g)
    least = np.partition(sample, -rank)[-rank]
    rows = above(problem, g, (1.0 - 4 * UNIT) * least * top)  # those that are equal to it as well
    if len(rows) <= count:
        return rows
    return rows[np.argpartition(-_fractions(groups[rows], g[rows], top), count)[:count]]


def _fractions(groups: np.ndarray, g: np.ndarray, top: np.ndarray) -> np.ndarray:
    """Variances as fractions of the largest of their group, which is zero only if all are."""
    return np.divide(g, top[groups], out=np.zeros(len(g)), where=g > 0)


def _shared_equally(problem: DesignProblem, rows: np.ndarray) -> np.ndarray:
    """Weights that share each group's budget equally between some of its candidates."""
    groups = problem.groups[rows]
    count = np.bincount(groups, minlength=problem.n_groups)
    out = np.zeros(problem.n_candidates)
    out[rows] = (problem.budgets / count)[groups]
    return out


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
