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

from optdesign.certificate import all_variances, group_maxima, information_matrices
from optdesign.information import factorise
from optdesign.problem import DesignProblem
from optdesign.reduced import reduce
from optdesign.solvers import Step, newton

DEFAULT_MAX_ITER = 60
"""Rounds."""

INNER = 0.1
"""A round solves its part to this fraction of the last gap over all candidates."""
LAST = 0.3
"""But not below this fraction of the target."""

GROW = 0.5
"""Candidates enter that exceed the active bound by this fraction of the group's largest excess."""
KEEP = 0.9
"""Candidates without weight stay active while their variance is this fraction of the bound."""

ALL = 0.5
"""When more than this fraction of the candidates is active, all are."""

STALL_ROUNDS = 4
"""Stop after this many rounds without a smaller gap."""


def run(
    problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int | None = None
) -> Iterator[Step]:
    """Rounds of solving and pricing, starting from the support of the weights. Overwrites weights.

    An iteration is a round; its gap is the one over all candidates.
    """
    n = problem.n_candidates
    active = np.flatnonzero(weights)
    best, since_best = np.inf, 0
    trial = weights.copy()
    for _ in range(DEFAULT_MAX_ITER if max_iter is None else max_iter):
        g = priced(problem, trial)
        top = group_maxima(problem, g)
        gap = float(top.sum()) - problem.rank
        since_best += 1
        if gap < best:
            best, since_best = gap, 0
            weights[:] = trial
        stage = f"newton on {len(active)} of {n} candidates"
        yield Step(np.array([gap]), stage)
        if gap <= target or since_best > STALL_ROUNDS:
            return
        active = _next_active(problem, active, trial, g, top)
        reduced = reduce(problem, active)
        u = reduced.restrict(trial, problem)
        inner = LAST * target
        if len(active) < n:
            inner = max(inner, INNER * min(gap, problem.rank))
        for _ in newton.iterate(reduced, u, inner):
            yield Step(np.empty(0), stage)
        reduced.extend(u, problem, trial)


def priced(problem: DesignProblem, weights: np.ndarray) -> np.ndarray:
    """Variance times budget of every candidate; infinite if the weights lose rank."""
    information = information_matrices(problem, weights)
    factor = np.zeros_like(information)
    _, full = factorise(information, problem.ranks, factor)
    if not full.all():
        return np.full(problem.n_candidates, np.inf)
    g = all_variances(problem, factor)
    g *= problem.budgets[problem.groups]
    return g


def _next_active(
    problem: DesignProblem, active: np.ndarray, weights: np.ndarray, g: np.ndarray, top: np.ndarray
) -> np.ndarray:
    """The active set of the next round, sorted."""
    groups = problem.groups
    bound = np.zeros(problem.n_groups)
    np.maximum.at(bound, groups[active], g[active])
    threshold = np.maximum(bound + GROW * (top - bound), bound * (1 + 1e-13))
    chosen = g >= threshold[groups]
    stay = active[(weights[active] > 0) | (g[active] >= KEEP * bound[groups[active]])]
    chosen[stay] = True
    out = np.flatnonzero(chosen)
    return out if len(out) <= ALL * len(chosen) else np.arange(len(chosen))
