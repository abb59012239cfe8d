"""The combination of methods that suits a problem; the docs page "choosing a method" gives the reasons.

1. Sweeps of block coordinate ascent, for as long as they are estimated to finish before Newton steps would.
   Large problems whose groups have many candidates skip this stage.
2. Newton steps: on a working set of candidates, or on all candidates if most of them have weight.
3. More sweeps, if Newton steps end before the target. Sweeps need no linear system.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from optdesign.problem.problem import DesignProblem
from optdesign.solvers import bca, newton, working_set
from optdesign.solvers.costs import SWEEPS, mostly_positive, newton_time, steps_time, sweeps_time
from optdesign.solvers.method import Step, on_problem
from optdesign.solvers.start import large_groups

_sweeps = on_problem(partial(bca.run, batch=SWEEPS))
_newton_on_all = on_problem(newton.run)


def run(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
    """Run the stages in turn until one reaches the target. Overwrites weights."""
    left = max_iter
    for stage in (_initial_sweeps, _newton, _final_sweeps):
        gap = np.inf
        for step in stage(problem, weights, target, left):
            left -= len(step.gaps)
            gap = step.gaps[-1]
            yield step
        if gap <= target or left <= 0:
            return


def _initial_sweeps(
    problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int
) -> Iterator[Step]:
    """Sweep until Newton steps are estimated to be faster. Overwrites weights."""
    n, gaps = problem.n_candidates, np.empty(0)
    positive = int(np.count_nonzero(weights))
    if large_groups(problem) and sweeps_time(problem, n, positive) > steps_time(problem, positive):
        return
    for step in _sweeps(problem, weights, target, max_iter):
        yield step
        if step.gaps[-1] <= target:
            continue
        gaps = np.concatenate([gaps, step.gaps])[-SWEEPS:]
        if len(gaps) == SWEEPS:
            positive = int(np.count_nonzero(weights))
            remaining = _remaining_sweeps(gaps, target) / SWEEPS * sweeps_time(problem, n, positive)
            if remaining > newton_time(problem, positive):
                return


def _newton(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
    """Take Newton steps on all candidates if most have weight, else on a working set. Overwrites weights."""
    on_all = mostly_positive(problem, int(np.count_nonzero(weights)))
    return (_newton_on_all if on_all else working_set.run)(problem, weights, target, max_iter)


def _final_sweeps(
    problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int
) -> Iterator[Step]:
    """Sweep and keep the weights of smallest gap: gaps may rise while log det does. Overwrites weights."""
    trial, rows = weights.copy(), np.flatnonzero(weights)
    best, *_ = working_set.price(problem, rows, weights[rows])
    for step in _sweeps(problem, trial, target, max_iter):
        if step.gaps[-1] < best:
            best = step.gaps[-1]
            weights[:] = trial
        yield step


def _remaining_sweeps(gaps: np.ndarray, target: float) -> float:
    """Return the number of sweeps to the target at the rate of the second half of the gaps."""
    gaps = gaps[len(gaps) // 2 :]
    if not (0 < gaps[0] < math.inf and 0 < gaps[-1] < math.inf):
        return math.inf
    rate = math.log(gaps[-1] / gaps[0]) / (len(gaps) - 1)
    return math.log(target / gaps[-1]) / rate if rate < 0 else math.inf
