"""Solve on few candidates, price all.

At the optimum few candidates have weight. So the interior point method runs on an active set; one pass over
the data gives the variances of all candidates, which is the certificate of the whole problem and tells which
candidates to add: those whose variance exceeds the largest in their group's active part.

Every round starts from the weights of the last one, so log Det rises and the gap over all candidates goes
to zero. Weights are restricted, never the problem: what is returned is certified over all candidates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optdesign._kernel import kernel
from optdesign.problem import DesignProblem
from optdesign.reduced import Reduced, reduce
from optdesign.solvers import NOTHING, PATIENCE, Step, bca, newton
from optdesign.solvers.costs import SWEEPS, steps_time, sweeps_time
from optdesign.solvers.start import priced

INNER = 0.005
"""A round solves its part to this fraction of the last gap over all candidates."""

STAGE = "newton on the candidates that matter"


def run(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
    """Rounds of solving and pricing, starting from the support of the weights. Overwrites weights.

    An iteration is a round; its gap is the one over all candidates.
    """
    rows, trial = np.flatnonzero(weights), weights.copy()
    # Weight on most candidates does not tell which of them matter: then all are active.
    spread = 2 * len(rows) > problem.n_candidates
    best, since_best = np.inf, 0
    for _ in range(max_iter):
        g, top = priced(problem, rows, trial[rows])
        gap = float(problem.budgets @ top) - problem.rank
        since_best += 1
        if gap < best:
            best, since_best = gap, 0
            weights[:] = trial
        yield Step(np.array([gap]), STAGE)
        if gap <= target or since_best > PATIENCE or not np.isfinite(gap):
            return
        if spread:
            rows = np.arange(problem.n_candidates)
        else:
            rows = _next_rows(problem.groups, g, rows, trial, problem.n_groups)
        del g  # of the size of the weights, and not needed while the next are computed
        part = reduce(problem, rows)
        u = part.restrict(trial, problem)
        if spread:
            for step in newton.run(part, u, target, newton.MOST):
                if len(step.gaps) and step.gaps[-1] < best:
                    # The gap over all candidates: what is found is kept, should a limit end the round.
                    part.extend(u, problem, weights)
                yield Step(NOTHING, STAGE)
        else:
            for _ in _round(problem, part, u, max(target, INNER * min(gap, problem.rank))):
                yield Step(NOTHING, STAGE)
        part.extend(u, problem, trial)


def _round(problem: DesignProblem, part: Reduced, u: np.ndarray, target: float) -> Iterator[Step]:
    """A few sweeps over a part of the problem, where they cost no more than Newton steps; then those."""
    gap, rows = np.inf, len(u)
    if sweeps_time(problem, rows, int(np.count_nonzero(u))) <= steps_time(problem, rows, problem.n_groups):
        for step in bca.run(part, u, target, SWEEPS):
            gap = step.gaps[-1] if len(step.gaps) else gap
            yield step
    if gap > target:
        yield from newton.run(part, u, target, newton.MOST)


@kernel
def _next_rows(groups, g, rows, weights, n_groups):
    """The active candidates of the next round, in order: with weight, or above those of the last round."""
    bound = np.zeros(n_groups)
    for n in rows:
        bound[groups[n]] = max(bound[groups[n]], g[n])
    count = 0
    for n in range(len(g)):
        count += weights[n] > 0.0 or g[n] > bound[groups[n]]
    out = np.empty(count, np.int64)
    count = 0
    for n in range(len(g)):
        if weights[n] > 0.0 or g[n] > bound[groups[n]]:
            out[count] = n
            count += 1
    return out
