"""Column generation: solve on a working set of candidates, then price all candidates.

Few candidates have weight at an optimum. Each round solves the problem on a working set. One pass over the
data then computes the variances of all candidates, which is called pricing. It gives the gap over all
candidates, which certifies the whole problem, and the violators: candidates whose variance exceeds the
largest variance of their group in the working set. The next working set is the support of the weights and the
violators.

log det rises in every round, because each starts from the weights of the last, so the gap tends to zero.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optdesign.algebra.passes import above, exceeding, raise_to_largest, variances_at
from optdesign.algebra.reduced import reduce
from optdesign.algebra.whitening import few, measured, whitened
from optdesign.problem.problem import DesignProblem
from optdesign.solvers import bca, newton
from optdesign.solvers.costs import SWEEPS, steps_time, sweeps_time
from optdesign.solvers.method import NO_GAPS, PATIENCE, Step

ACCURACY = 0.005
"""A round solves its working set to this fraction of the last gap over all candidates."""

STAGE = "newton on a working set"


def run(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
    """Alternate between solving and pricing, starting from the support of the weights. Overwrites weights.

    An iteration is a round. Its gap is the gap over all candidates. The weights always have the smallest gap
    that was found.
    """
    trial, rows = weights.copy(), np.flatnonzero(weights)
    best_rows, best_gap, gap, rounds_since_best = rows, np.inf, np.inf, 0
    violators = rows  # the whole first working set is new
    for _ in range(max_iter):
        accuracy = max(target, ACCURACY * min(gap, problem.rank))
        yield from _solve_on(problem, rows, trial, accuracy, sweep=2 * len(violators) >= len(rows))
        gap, violators = price(problem, rows, trial[rows])
        rounds_since_best += 1
        if gap < best_gap:
            weights[best_rows] = 0.0
            weights[rows] = trial[rows]
            best_rows, best_gap, rounds_since_best = rows, gap, 0
        yield Step(np.array([gap]), STAGE)
        if gap <= target or gap == np.inf or rounds_since_best > PATIENCE:
            return
        rows = np.union1d(rows[trial[rows] > 0], violators)


def _solve_on(
    problem: DesignProblem, rows: np.ndarray, trial: np.ndarray, target: float, *, sweep: bool
) -> Iterator[Step]:
    """Solve the problem on the candidates ``rows``. Overwrites their weights in trial.

    With ``sweep`` a few sweeps come before the Newton steps, if they are estimated to take no longer. They
    remove most of the new candidates that are not needed.
    """
    part = reduce(problem, rows)
    u = part.restrict(trial)
    gap = np.inf
    if sweep and sweeps_time(problem, len(u), int(np.count_nonzero(u))) <= steps_time(problem, len(u)):
        for step in bca.run(part, u, target, SWEEPS):
            gap = step.gaps[-1] if len(step.gaps) else gap
            yield Step(NO_GAPS, STAGE)
    if gap > target:
        for _ in newton.run(part, u, target):
            yield Step(NO_GAPS, STAGE)
    part.extend(u, trial)


def price(problem: DesignProblem, rows: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the gap over all candidates of the weights of the candidates ``rows``, and the violators.

    The gap is infinite, and there are no violators, if the weights lose rank.
    """
    bound = np.zeros(problem.n_groups)
    if few(problem.rows):
        at_all = measured(problem, problem.rows, rows, weights, attempts=1)
        if not at_all.full:
            return np.inf, rows[:0]
        raise_to_largest(problem.groups[rows], at_all.g[rows], bound)
        violators, largest = above(problem, at_all.g, bound), at_all.largest
    else:  # too many variances to keep
        white, _, log_det = whitened(problem, problem.rows, rows, weights, attempts=1)
        if np.minimum.reduce(log_det) == -np.inf:
            return np.inf, rows[:0]
        raise_to_largest(problem.groups[rows], variances_at(problem, problem.rows, white, rows), bound)
        violators, largest = exceeding(problem, problem.rows, white, bound)
    return float(problem.budgets @ largest) - problem.rank, violators
