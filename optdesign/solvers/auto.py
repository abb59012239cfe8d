"""The combination of methods that suits a problem; the docs page "choosing a method" gives the reasons.

1. Sweeps of block coordinate ascent, as long as they promise to get there sooner than Newton steps. Large
   problems whose groups have many candidates skip them.
2. Newton steps on the candidates that matter, until the gap over all of them is small enough.
3. Whatever is left, by more sweeps: they need no linear system and cannot fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from optdesign.problem.problem import DesignProblem
from optdesign.solvers import Step, bca, lifted
from optdesign.solvers import working_set as active
from optdesign.solvers.costs import SWEEPS, newton_time, steps_time, sweeps_time
from optdesign.solvers.start import large_groups

sweeps = lifted(partial(bca.run, batch=SWEEPS))
"""Block coordinate ascent on whole problems, with a look at its pace now and then."""


def run(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
    """Run the combination. Overwrites weights."""
    left = max_iter
    for method in (_sweeps_that_pay, active.run, _more_sweeps):
        gap = np.inf
        for step in method(problem, weights, target, left):
            left -= len(step.gaps)
            gap = step.gaps[-1] if len(step.gaps) else gap
            yield step
        if gap <= target or left <= 0:
            return


def _sweeps_that_pay(
    problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int
) -> Iterator[Step]:
    """Sweeps for as long as Newton steps do not promise to be faster."""
    n, gaps = problem.n_candidates, np.empty(0)
    positive = int(np.count_nonzero(weights))
    if large_groups(problem) and sweeps_time(problem, n, positive) > steps_time(problem, positive):
        return
    for step in sweeps(problem, weights, target, max_iter):
        yield step
        if not len(step.gaps) or step.gaps[-1] <= target:
            continue
        gaps = np.concatenate([gaps, step.gaps])[-SWEEPS:]
        if len(gaps) == SWEEPS:
            positive = int(np.count_nonzero(weights))
            ahead = _sweeps_ahead(gaps, target) / SWEEPS * sweeps_time(problem, n, positive)
            if ahead > newton_time(problem, positive):
                return


def _more_sweeps(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
    """Sweeps from where Newton steps ended; their gaps may rise while log det does: the best are kept."""
    trial, rows = weights.copy(), np.flatnonzero(weights)
    best = active.priced(problem, rows, weights[rows])[0]
    for step in sweeps(problem, trial, target, max_iter):
        if len(step.gaps) and step.gaps[-1] < best:
            best = step.gaps[-1]
            weights[:] = trial
        yield step


def _sweeps_ahead(gaps: np.ndarray, target: float) -> float:
    """Sweeps until the target, at the pace of the last of them: the second half."""
    gaps = gaps[len(gaps) // 2 :]
    if not (0 < gaps[0] < math.inf and 0 < gaps[-1] < math.inf):
        return math.inf
    pace = math.log(gaps[-1] / gaps[0]) / (len(gaps) - 1)
    return math.log(target / gaps[-1]) / pace if pace < 0 else math.inf
