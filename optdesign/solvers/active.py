"""Solve on few candidates, price all.

At the optimum few candidates have weight. So the interior point method runs on a small active set; one
pass over the data gives the variances of all candidates, which is the certificate of the whole problem and
tells which candidates to add: those whose variance exceeds the largest in their group's active part.

Every round starts from the weights of the last one, so log Det rises and the gap over all candidates goes
to zero. Weights are restricted, never the problem: what is returned is certified over all candidates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optdesign.problem import DesignProblem
from optdesign.reduced import reduce
from optdesign.solvers import Step, bca, newton
from optdesign.solvers.start import ROOM, exceeding, many_candidates, priced
from optdesign.solvers.systems import step_cost

INNER = 0.01
"""A round solves its part to this fraction of the last gap over all candidates."""
LAST = 0.3
"""But not below this fraction of the target."""

SWEEPS = 10
"""Sweeps of block coordinate ascent that a round tries before Newton steps, if its weights are sparse."""

NEWTON_STEPS = 100
"""Most Newton steps in a round; they rarely need twenty."""

GROW = 0.5
"""Candidates enter that exceed the active bound by this fraction of the group's largest excess."""
KEEP = 0.9
"""Candidates without weight stay active while their variance is this fraction of the bound."""

ALL = 0.5
CHEAP_STEP = 2e6
"""When more than this fraction of the candidates is active, all are; and also when groups are small and a
Newton step on all candidates needs no more multiplications than this."""

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
    active = np.flatnonzero(weights)
    w = weights[active]
    best, since_best = np.inf, 0
    for _ in range(max_iter):
        g, top = priced(problem, active, w)
        gap = float(problem.budgets @ top) - problem.rank
        since_best += 1
        if gap < best:
            best, since_best = gap, 0
            better = np.zeros(n)
            better[active] = w
            weights[:] = better
        yield Step(np.array([gap]), STAGE)
        if gap <= target or since_best > STALL_ROUNDS or not np.isfinite(gap):
            return
        active, w = _next_active(problem, active, w, g, top)
        inner = LAST * target
        if len(active) < n:
            inner = max(inner, INNER * min(gap, problem.rank))
        reduced = reduce(problem, active)
        budgets = problem.budgets[problem.groups[active]]
        u = w / budgets
        inner_gap = np.inf
        if len(active) < n and np.count_nonzero(u) <= ROOM * problem.enough:
            for gaps in bca.ascend(reduced, u, inner, SWEEPS):
                inner_gap = gaps[-1]
        if inner_gap > inner:
            for _ in newton.iterate(reduced, u, inner, NEWTON_STEPS):
                yield Step(np.empty(0), STAGE)
        w = u * budgets


def _next_active(
    problem: DesignProblem, active: np.ndarray, w: np.ndarray, g: np.ndarray, top: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The active set of the next round, sorted by group, and its weights so far."""
    groups = problem.groups[active]
    bound = np.zeros(problem.n_groups)
    np.maximum.at(bound, groups, g[active])
    stay = (w > 0) | (g[active] >= KEEP * bound[groups])
    enter = exceeding(problem.groups, g, np.maximum(bound + GROW * (top - bound), bound * (1 + ENTER_RTOL)))
    rows = np.union1d(active[stay], enter)
    cheap = step_cost(problem) <= CHEAP_STEP and not many_candidates(problem)
    if len(rows) > ALL * len(g) or cheap:
        rows = np.arange(len(g))
    rows = rows[np.argsort(problem.groups[rows], kind="stable")]
    known = np.zeros(len(g))
    known[active] = w
    return rows, known[rows]
