"""Solve on few candidates, price all.

At the optimum few candidates have weight. So the interior point method runs on an active set; one pass over
the data gives the variances of all candidates, which is the certificate of the whole problem and tells which
candidates to add: those whose variance exceeds the largest in their group's active part. Where weights do not
tell yet what matters, all are active.

Every round starts from the weights of the last one, so log Det rises and the gap over all candidates goes
to zero. Weights are restricted, never the problem: what is returned is certified over all candidates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optdesign._kernel import kernel
from optdesign.problem import DesignProblem
from optdesign.reduced import reduce
from optdesign.solvers import NOTHING, Step, bca, newton
from optdesign.solvers.costs import step_time, sweep_time
from optdesign.solvers.start import many_candidates, priced

INNER = 0.01
"""A round solves its part to this fraction of the last gap over all candidates."""
LAST = 0.3
"""But not below this fraction of the target."""

SWEEPS_WORTH = 4
"""A round tries some sweeps of block coordinate ascent before Newton steps, if they take no longer than so
many of those."""

NEWTON_STEPS = 100
"""Most Newton steps in a round; they rarely need twenty."""

KEEP = 0.98
"""Candidates without weight stay active while their variance is this fraction of the bound."""

ALL = 0.5
"""When more than this fraction of the candidates is active, all are."""

SPREAD = 1.5
SPREAD_LIMIT, SPREAD_STEP = 100_000, 5e9
"""All are, too, when groups are small and a run starts with weight on all or on more than SPREAD times the
candidates that an optimum needs: then which of them keep it is open. Up to this many candidates in all, and
nanoseconds of a Newton step on them."""

CHEAP_STEP = 2.2e5
"""And when a Newton step on all takes no more nanoseconds than this: another round would cost as much."""

ENTER_RTOL = 1e-13
"""Nothing enters that exceeds the active bound by rounding only."""

STAGE = "newton on the candidates that matter"

STALL_ROUNDS = 4
"""Stop after this many rounds without a smaller gap."""


def run(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
    """Rounds of solving and pricing, starting from the support of the weights. Overwrites weights.

    An iteration is a round; its gap is the one over all candidates.
    """
    n = problem.n_candidates
    rows, trial = np.flatnonzero(weights), weights.copy()
    take_all = _takes_all(problem, len(rows))
    best, since_best = np.inf, 0
    for _ in range(max_iter):
        g, top = priced(problem, rows, trial[rows])
        gap = float(problem.budgets @ top) - problem.rank
        since_best += 1
        if gap < best:
            best, since_best = gap, 0
            weights[:] = trial
        yield Step(np.array([gap]), STAGE)
        if gap <= target or since_best > STALL_ROUNDS or not np.isfinite(gap):
            return
        rows = _next_rows(problem.groups, g, top, rows, trial)
        del g  # of the size of the weights, and not needed while the next are computed
        if take_all or len(rows) > ALL * n:
            rows = np.arange(n)
        inner = LAST * target
        if len(rows) < n:
            inner = max(inner, INNER * min(gap, problem.rank))
        reduced = reduce(problem, rows)
        u = reduced.restrict(trial, problem)
        inner_gap = np.inf
        sweeps = bca.BATCH * sweep_time(problem, len(rows), int(np.count_nonzero(u)))
        if len(rows) < n and sweeps <= SWEEPS_WORTH * step_time(problem, len(rows), problem.n_groups):
            for step in bca.run(reduced, u, inner, bca.BATCH):
                inner_gap = step.gaps[-1] if len(step.gaps) else inner_gap
        if inner_gap > inner:
            for step in newton.run(reduced, u, inner, NEWTON_STEPS):
                if len(rows) == n and len(step.gaps) and step.gaps[-1] < best:
                    # The gap over all candidates: what is found is kept, should a limit end the round.
                    reduced.extend(u, problem, weights)
                yield Step(NOTHING, STAGE)
        reduced.extend(u, problem, trial)


def spread(problem: DesignProblem, positive: int) -> bool:
    """Whether so many positive weights tell too little about the optimum's support."""
    n = problem.n_candidates
    return (positive == n or positive > SPREAD * problem.enough) and not many_candidates(problem)


def _takes_all(problem: DesignProblem, positive: int) -> bool:
    """Whether a run that starts with so many positive weights takes all candidates."""
    n, step = problem.n_candidates, step_time(problem, problem.n_candidates, problem.n_groups)
    small = n <= SPREAD_LIMIT and step <= SPREAD_STEP
    return step <= CHEAP_STEP or (small and spread(problem, positive))


@kernel
def _next_rows(groups, g, top, rows, weights):
    """The active candidates of the next round, in order, from those of the last one and all variances."""
    bound = np.zeros(len(top))
    for n in rows:
        bound[groups[n]] = max(bound[groups[n]], g[n])
    chosen = np.zeros(len(g), np.bool_)
    for n in rows:
        chosen[n] = weights[n] > 0.0 or g[n] >= KEEP * bound[groups[n]]
    for n in range(len(g)):
        low = bound[groups[n]]
        if g[n] > low * (1.0 + ENTER_RTOL):
            chosen[n] = True
    return np.flatnonzero(chosen)
