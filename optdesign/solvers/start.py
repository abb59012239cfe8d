"""Initial weights.

From the uniform design every candidate that is not needed has to be removed again, one by one. If groups have
many candidates, a better start has weight on few of them: on a basis of every block, and on candidates of
high leverage, which are those with the largest variances under the uniform design of a subsample.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optdesign.algebra.blocks import WIDE
from optdesign.algebra.whitening import measured
from optdesign.design.feasible import scale
from optdesign.errors import InputError
from optdesign.numbers.roundoff import ROUNDOFF
from optdesign.problem.inputs import one_per_candidate
from optdesign.problem.problem import DesignProblem
from optdesign.runtime.jit import kernel
from optdesign.solvers.costs import pass_time, steps_time, sweeps_time


class Parameters(NamedTuple):
    """Parameters of initial weights."""

    many: int = 8
    """There are many candidates if they are more than this multiple of the number of parameters and groups,
    and of the pairs of a group and a block. A start, and the subsample that ranks leverages, has up to this
    multiple of the candidates that an optimum may need."""
    even: float = 0.1
    """Leverages are even if the uniform design has at most this relative gap. The uniform design is then
    used."""
    basis_only: int = 2000
    """A single group of up to this many candidates starts from a basis."""
    mixed: float = 1e-3
    """Share of the uniform design that is mixed into a given start that loses rank, or whose relative gap
    exceeds the inverse of this share."""


START = Parameters()


def given_start(problem: DesignProblem, start: ArrayLike) -> np.ndarray:
    """Return feasible weights of full rank near the given ones."""
    uniform = problem.uniform()
    remedy = "For weights per client and arm, pass those of the active arms: w[active]."
    w = one_per_candidate(start, "start", problem.n_candidates, remedy).copy()
    bad = ~((w >= 0) & np.isfinite(w))
    if bad.any():
        at = int(np.argmax(bad))
        remedy = "Leave it out to start from the uniform design."
        raise InputError("start", "must be finite and not negative", f"start[{at}] = {w[at]}", remedy)
    # Divide by the largest entry of a group first: a sum of huge or subnormal entries would over- or
    # underflow.
    largest = np.zeros(problem.n_groups)
    np.maximum.at(largest, problem.groups, w)
    top = largest[problem.groups]
    w = np.divide(w, top, out=uniform.copy(), where=top > 0)
    scale(problem.groups, problem.budgets, w)
    # No certificate is computed: for nearly singular weights it can take much longer than a time limit.
    rows = np.flatnonzero(w)
    if _relative_gap(problem, _leverages(problem, rows, w[rows])) <= 1 / START.mixed:
        return w
    return (1 - START.mixed) * w + START.mixed * uniform


def default_start(problem: DesignProblem) -> np.ndarray:
    """Return the uniform design, or equal weights on few candidates if there are many."""
    if not _has_many_candidates(problem):
        return problem.uniform()
    if problem.n_candidates <= START.basis_only and problem.n_groups == 1:
        # The optimality of the uniform design is checked for high ranks only: for low ones the check takes
        # longer than the solve that it may save.
        if problem.largest_rank >= WIDE:
            uniform = problem.uniform()
            leverages = _leverages(problem, np.arange(problem.n_candidates), uniform)
            if _relative_gap(problem, leverages) <= ROUNDOFF * problem.n_candidates:
                return uniform
        return _equal_weights(problem, problem.basis)
    return high_leverage_start(problem)


def high_leverage_start(problem: DesignProblem) -> np.ndarray:
    """Return equal weights on a basis of every block and on candidates of high leverage.

    One candidate of every group is taken if an optimum needs hardly more, or if the resulting design is
    nearly optimal. If leverages are even and it is not, the start is the uniform design.
    """
    n, large = problem.n_candidates, large_groups(problem)
    every = max(1, n // (START.many * problem.support_bound))
    sample = _subsample(problem, every)
    leverages = _leverages(problem, sample, problem.equal_shares[problem.groups[sample]])
    if leverages is None:
        return problem.uniform()
    g, top = leverages
    chosen = np.zeros(n, np.bool_)
    chosen[problem.basis] = True
    if large and every == 1 and _relative_gap(problem, leverages) <= START.even:
        chosen[first_largest(problem.groups, g, problem.n_groups)] = True
        weights = _equal_weights(problem, np.flatnonzero(chosen))
        rows = np.flatnonzero(weights)
        is_nearly_optimal = _relative_gap(problem, _leverages(problem, rows, weights[rows])) <= START.even
        return weights if is_nearly_optimal else problem.uniform()
    if large:
        chosen[_highest(problem, g, top)] = True
    if not large or np.bincount(problem.groups[chosen], minlength=problem.n_groups).min() == 0:
        chosen[first_largest(problem.groups, g, problem.n_groups)] = True
    return _equal_weights(problem, np.flatnonzero(chosen))


def large_groups(problem: DesignProblem) -> bool:
    """Return True if Newton steps on a part are estimated to take less time than sweeps over all.

    The part has as many candidates as an optimum may need, which is several per group.
    """
    needed, groups = problem.support_bound, problem.n_groups
    if needed <= 2 * groups or not _has_many_candidates(problem):
        return False
    return steps_time(problem, needed) < sweeps_time(problem, problem.n_candidates, needed)


def _has_many_candidates(problem: DesignProblem) -> bool:
    """Return True if there are many more candidates than an optimum needs.

    They are counted in total, and per group and block.
    """
    groups = problem.n_groups
    return problem.n_candidates > START.many * max(problem.rank + groups, groups * problem.n_parameter_blocks)


def start_size(problem: DesignProblem) -> int:
    """Return the number of candidates of high leverage in a start.

    It is the largest number for which Newton steps take at most the time of a pass over all candidates,
    within a multiple of the number that an optimum may need.
    """
    groups = problem.n_groups
    least = groups + START.many * problem.rank
    most = min(problem.n_candidates, groups + START.many * (problem.support_bound - groups))
    sizes = np.geomspace(least, max(least, most), 30).astype(int).tolist()
    return max((size for size in sizes if steps_time(problem, size) <= pass_time(problem)), default=least)


def _subsample(problem: DesignProblem, every: int) -> np.ndarray:
    """Return the rows of a basis and every ``every``-th row."""
    if every == 1:
        return np.arange(problem.n_candidates)
    chosen = np.zeros(problem.n_candidates, np.bool_)
    chosen[::every] = True
    chosen[problem.basis] = True
    return np.flatnonzero(chosen)


def _leverages(
    problem: DesignProblem, rows: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the variances of all candidates under the weights of some, and the largest of every group.

    Returns None if the weights lose rank.
    """
    found = measured(problem, problem.rows, rows, weights, attempts=1)
    return (found.g, found.largest) if found.full else None


def _relative_gap(problem: DesignProblem, leverages: tuple[np.ndarray, np.ndarray] | None) -> float:
    """Return the relative gap of a design with these variances, infinite for None."""
    return np.inf if leverages is None else float(problem.budgets @ leverages[1]) / problem.rank - 1.0


def _highest(problem: DesignProblem, g: np.ndarray, top: np.ndarray) -> np.ndarray:
    """Return ``start_size`` candidates whose variance is the largest fraction of that of their group."""
    fractions = np.divide(g, top[problem.groups], out=np.zeros(len(g)), where=g > 0)
    return np.argpartition(fractions, -start_size(problem))[-start_size(problem) :]


def _equal_weights(problem: DesignProblem, rows: np.ndarray) -> np.ndarray:
    """Return weights that divide each group's budget equally between its candidates in ``rows``."""
    groups = problem.groups[rows]
    count = np.bincount(groups, minlength=problem.n_groups)
    out = np.zeros(problem.n_candidates)
    out[rows] = (problem.budgets / count)[groups]
    return out


@kernel
def first_largest(groups, values, n_groups):
    """Return the first candidate of every group that has its largest value."""
    out = np.empty(n_groups, np.int64)
    for i in range(n_groups):
        out[i] = -1
    for n in range(len(values)):
        if out[groups[n]] < 0 or values[n] > values[out[groups[n]]]:
            out[groups[n]] = n
    return out
