"""Column generation: solve on a working set of candidates, then price all candidates.

Few candidates have weight at an optimum. Each round has three steps:

1. Solve the problem on a working set of candidates, starting from the weights of the previous round.
2. Price: compute the variances of all candidates in one pass over the data. A violator is a candidate whose
   variance exceeds the largest variance of its group in the working set. The variances give the violators
   and an estimate of the gap over all candidates.
3. Take the support of the weights and the violators as the next working set.

The final certificate (:mod:`optdesign.solvers.loop`) does not use the estimate of the gap. If the working
sets are solved exactly, log det rises until there are no violators. The gap may rise from one round to the
next. The method ends after more than PATIENCE rounds without a smaller gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from optdesign.algebra.passes import above, exceeding, raise_to_largest, variances_at
from optdesign.algebra.reduced import reduce
from optdesign.algebra.whitening import fits_one_call, measured, whitened
from optdesign.problem.problem import DesignProblem
from optdesign.solvers import bca, newton
from optdesign.solvers.costs import SWEEPS, steps_time, sweeps_time
from optdesign.solvers.method import PATIENCE, Step
from optdesign.solvers.start import first_largest

STAGE = "newton on a working set"


class Parameters(NamedTuple):
    """Accuracy of a round, and largest number of violators that a round adds."""

    accuracy: float = 0.005
    """Target of a round for the gap on its working set, as a fraction of the last gap over all candidates."""
    violators: int = 16
    """Largest number of violators that a round adds, approximately, as a multiple of
    ``problem.support_bound``. An optimal design needs at most ``problem.support_bound`` candidates. The limit
    is reached on fine grids, because a large part of their candidates are violators."""


PARAMETERS = Parameters()


def run(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
    """Alternate between solving and pricing, starting from the support of the weights.

    Overwrites weights with those of the smallest gap so far. An iteration is a round. The sweeps and Newton
    steps inside a round are neither counted nor limited. The gap of a Step is the gap over all candidates.
    """
    trial, rows = weights.copy(), np.flatnonzero(weights)  # weights and working set of the current round
    best_rows, best_gap, gap, rounds_since_best = rows, np.inf, np.inf, 0
    n_new = len(rows)
    for _ in range(max_iter):
        # Before the first round the gap is infinite, and the rank replaces it.
        accuracy = max(target, PARAMETERS.accuracy * min(gap, problem.rank))
        mostly_new = 2 * n_new >= len(rows)
        _solve_on(problem, rows, trial, accuracy, sweep=mostly_new)
        gap, violators, variances = price(problem, rows, trial[rows])
        rounds_since_best += 1
        if gap < best_gap:
            weights[best_rows] = 0.0
            weights[rows] = trial[rows]
            best_rows, best_gap, rounds_since_best = rows, gap, 0
        yield Step(np.array([gap]), STAGE)
        # The gap is infinite if the weights lose rank.
        if gap <= target or not np.isfinite(gap) or rounds_since_best > PATIENCE:
            return
        violators = _limit_violators(problem, violators, variances)
        n_new = len(violators)
        rows = np.union1d(rows[trial[rows] > 0], violators)


def _solve_on(
    problem: DesignProblem, rows: np.ndarray, trial: np.ndarray, target: float, *, sweep: bool
) -> None:
    """Solve the problem on the candidates ``rows``. Overwrites their weights in trial.

    If ``sweep`` is True, at most SWEEPS sweeps of coordinate ascent come before the Newton steps. The sweeps
    are omitted if their estimated time exceeds that of the Newton steps. The optimum
    does not need most of the new candidates. The sweeps set most of these weights to zero.
    """
    part = reduce(problem, rows)
    u = part.restrict(trial)
    gap = np.inf
    if sweep and sweeps_time(problem, len(u), int(np.count_nonzero(u))) <= steps_time(problem, len(u)):
        for step in bca.run(part, u, target, SWEEPS):
            gap = step.gaps[-1]
    if gap > target:
        for _ in newton.run(part, u, target):
            pass
    part.extend(u, trial)


def price(
    problem: DesignProblem, rows: np.ndarray, weights: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the gap over all candidates, the violators and their variances, for weights on ``rows``.

    The gap is infinite, and there are no violators, if the weights lose rank.
    """
    bound = np.zeros(problem.n_groups)
    # One whitening is accurate enough for pricing; a certificate repeats it to reduce round-off.
    if fits_one_call(problem.rows):
        found = measured(problem, problem.rows, rows, weights, attempts=1)
        if not found.full:
            return np.inf, rows[:0], weights[:0]
        raise_to_largest(problem.groups[rows], found.g[rows], bound)
        violators, largest = above(problem, found.g, bound), found.largest
        variances = found.g[violators]
    else:  # large data: the variances of all candidates are not stored
        white, _, log_det = whitened(problem, problem.rows, rows, weights, attempts=1)
        if np.minimum.reduce(log_det) == -np.inf:
            return np.inf, rows[:0], weights[:0]
        raise_to_largest(problem.groups[rows], variances_at(problem, problem.rows, white, rows), bound)
        violators, largest = exceeding(problem, problem.rows, white, bound)
        variances = variances_at(problem, problem.rows, white, violators)
    return float(problem.budgets @ largest) - problem.rank, violators, variances


def _limit_violators(problem: DesignProblem, violators: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the violators, or a subset if there are more than ``PARAMETERS.violators`` allows.

    The subset has violators at a constant stride, and the violator of largest variance in each group.
    """
    stride = 1 + len(violators) // (PARAMETERS.violators * problem.support_bound)
    if stride == 1:
        return violators
    largest = first_largest(problem.groups[violators], variances, problem.n_groups)
    return np.union1d(violators[::stride], violators[largest[largest >= 0]])
